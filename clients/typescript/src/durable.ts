// What a broker with a durable store has beside the rest (docs/durable.md): events that are kept, consumers that take them
// one by one, and queues of calls. A module of its own beside the client, `wirecall/durable`, which a page that has no use
// for it does not load.
//
// An event of a consumer is a request, whose id is "<consumer>:<seq>:<delivery>", and which a result acknowledges. The
// Provider serves it, as any call.
import type { CallOptions, Params } from "./call.js";
import type { CallContext } from "./call_context.js";
import {
  checkedParams,
  type ClientFace,
  paramsOf,
  type Pending,
  pending,
  type PublishOptions,
  sessionOf,
  type Subscription,
} from "./client.js";
import { Declaration } from "./declaration.js";
import type { Request } from "./link.js";
import { checkedOptions } from "./options.js";
import type { Handler } from "./provider.js";
import { ErrorCode, localError, member, readError, type RpcError } from "./rpc_error.js";
import type { Session } from "./session.js";
import { unwrapped } from "./subscriptions.js";

/** Options of a subscription that joins a consumer at a broker's durable store; docs/durable.md has the meaning. */
export interface ConsumerOptions {
  /** The consumer's name. */
  durable: string;
  /** Where a new one begins: with all that is kept, with what comes (default), or with the event of that `seq`. */
  start?: "first" | "new" | number;
  /** Milliseconds that a handler may take; then the event is sent again: 30,000. */
  ackWait?: number;
  /** How often an event is sent, until it is given up: 5; 0 for no limit. */
  maxDeliver?: number;
  /** Events that are at work at a time, at all who have joined: 64. */
  maxInFlight?: number;
}

const consumerOptionNames: readonly string[] = ["durable", "start", "ackWait", "maxDeliver", "maxInFlight"];

/** One delivery of an event to a consumer. */
export interface Delivery {
  /** The event's number, the same each time it comes. */
  readonly seq: number;
  /** 1 the first time. */
  readonly delivery: number;
  /** The event is sent to somebody again: its time is up, or the connection is lost. A late result counts all the same. */
  readonly signal: AbortSignal;
}

/** When it has returned, or what it returns is fulfilled, the event is acknowledged; else it comes again. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- a value is of the publisher's making
export type ConsumerHandler<T = any> = (topic: string, value: T, delivery: Delivery) => unknown;

export interface DurablePublishOptions extends PublishOptions {
  /** An event of the same topic that comes again with this is kept once. */
  msgId?: string;
}

/** An event that the store has kept. */
export interface Kept {
  /** Its number. */
  readonly seq: number;
  /** It had been kept before, by the same `msgId`. */
  readonly duplicate?: true;
}

export interface PushOptions extends CallOptions {
  /** A job of the same method that comes again with this is pushed once. */
  msgId?: string;
  /** Milliseconds until it is begun at the earliest. */
  delay?: number;
  /** How often it is tried: 5; 0 for no limit. */
  maxDeliver?: number;
  /** Milliseconds that a provider has for it: an hour. */
  jobTimeout?: number;
}

/** A call that is kept until a provider has answered it. */
export interface Job<T = unknown> {
  readonly id: number;
  readonly method: string;
  readonly state: "waiting" | "running" | "done" | "dead";
  /** How often a provider has got it. */
  readonly deliveries: number;
  /** When it was pushed, in milliseconds since 1970. */
  readonly at_ms: number;
  /** Of `peek`. */
  readonly params?: Params;
  /** Of one that is done. */
  readonly result?: T;
  /** Of one that is dead, or has failed before. */
  readonly error?: RpcError;
}

export interface PeekOptions extends CallOptions {
  /** "waiting". */
  state?: Job["state"];
  /** Jobs behind this id. */
  after?: number;
  /** At most so many: 20. */
  count?: number;
}

export interface Durable {
  /** Publishes an event. Resolves once it is safe. */
  publish(topic: string, value?: unknown, options?: DurablePublishOptions): Promise<Kept>;
  /**
   * Joins a consumer: an event is kept for it until the handler has returned, or what it returns is fulfilled; where that
   * fails, or takes too long, the event comes again. Throws by HTTP.
   */
  subscribe<T = unknown>(topic: string, handler: ConsumerHandler<T>, options: ConsumerOptions): Pending<Subscription>;
  /** Pushes a call that the broker makes when a client provides the method. Resolves with the job's id once it is safe. */
  push(method: string, params?: Params, options?: PushOptions): Promise<number>;
  /** What has become of a job. */
  result<T = unknown>(id: number, options?: CallOptions): Promise<Job<T>>;
  /** The jobs of a method, with their params. */
  peek<T = unknown>(method: string, options?: PeekOptions): Promise<Job<T>[]>;
}

/** The durable store of a client's broker. */
export function durable<Api>(client: ClientFace<Api>): Durable {
  return {
    publish: (topic, value, { msgId, retain, ...options } = {}) =>
      client.call("rpc.publish", { topic, params: paramsOf(value), retain, durable: true, msg_id: msgId }, options),
    subscribe: (topic, handler, options) => subscribe(sessionOf(client, "subscribe"), topic, handler, options),
    push: async (method, params, { msgId, delay, maxDeliver, jobTimeout, ...options } = {}) => {
      const job = { method, params: checkedParams(params), msg_id: msgId, delay_ms: delay, max_deliver: maxDeliver };
      const pushed = await client.call<Job>("rpc.queue.push", { ...job, timeout_ms: jobTimeout }, options);
      return pushed.id;
    },
    result: async (id, options) => jobOf(await client.call<object>("rpc.queue.result", { id }, options)),
    peek: async (method, { state, after, count, ...options } = {}) => {
      const jobs = await client.call<object[]>("rpc.queue.peek", { method, state, after, count }, options);
      return jobs.map(jobOf);
    },
  };
}

function jobOf(row: object): Job<never> {
  const error = member(row, "error");
  return (error === undefined ? row : { ...row, error: readError(error) }) as Job<never>;
}

// ---- consumers ----

const consumersOf = new WeakMap<Session, Consumers>();

function subscribe(
  session: Session,
  topic: string,
  handler: ConsumerHandler,
  options: ConsumerOptions,
): Pending<Subscription> {
  const { durable, start, ackWait, maxDeliver, maxInFlight } = checkedOptions(
    options,
    consumerOptionNames,
    "a consumer",
  );
  const consumers = consumersOf.get(session) ?? new Consumers();
  consumersOf.set(session, consumers);
  session.serving = consumers.serving;
  consumers.add(durable, handler);
  const limits = { ack_wait_ms: ackWait, max_deliver: maxDeliver, max_in_flight: maxInFlight };
  const declaration = new Declaration("topic", topic, { topic, durable, start, ...limits });
  session.declare(declaration);
  const unsubscribe = async (): Promise<void> => {
    if (!consumers.stop(durable)) return;
    try {
      await session.withdraw(declaration);
    } finally {
      consumers.remove(durable);
    }
  };
  declaration.promise.catch(() => {
    if (consumers.stop(durable)) consumers.remove(durable);
  });
  return pending<Subscription>({ topic, unsubscribe }, declaration);
}

/** Those that a client has joined. */
class Consumers {
  /** By name; without a handler once nothing more is wanted. */
  readonly #handlers = new Map<string, ConsumerHandler | undefined>();

  /** Throws -32007 where this client has joined that one already. */
  add(name: string, handler: ConsumerHandler): void {
    if (this.#handlers.has(name)) {
      const reason = { reason: `this client has joined ${name} already; unsubscribe that first` };
      throw localError(ErrorCode.conflict, "Conflict", "no", reason);
    }
    this.#handlers.set(name, handler);
  }

  /** No further event is handled: what comes still is for others. Whether there was a handler. */
  stop(name: string): boolean {
    const handled = this.#handlers.get(name) !== undefined;
    if (handled) this.#handlers.set(name, undefined);
    return handled;
  }

  remove(name: string): void {
    this.#handlers.delete(name);
  }

  /** What serves a request that is an event of one of them; undefined for any other. */
  readonly serving = ({ id, method, params }: Request): Handler | undefined => {
    if (typeof id !== "string") return undefined;
    const [, name = "", seq, delivery] = /^([\w-]+):(\d+):(\d+)$/.exec(id) ?? [];
    if (!this.#handlers.has(name)) return undefined;
    const handler = this.#handlers.get(name);
    return async function (this: CallContext): Promise<void> {
      if (!handler) throw localError(ErrorCode.cancelled, "Cancelled", "no");
      await handler(method, unwrapped(params), { seq: Number(seq), delivery: Number(delivery), signal: this.signal });
    };
  };
}
