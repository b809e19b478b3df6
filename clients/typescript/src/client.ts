// Client: what `connect` returns. Its own methods are few and have the names below; every other name is a method of the
// server, and `call` reaches those that are called alike.
import { BatchCalls, type Batch } from "./batch.js";
import {
  Call,
  type CallOptions,
  type Channel,
  callOptionNames,
  callTimeout,
  type ItemSink,
  type Params,
} from "./call.js";
import { Declaration } from "./declaration.js";
import type { Log } from "./log.js";
import type { AnyApi, AnyFunction, Item, Methods, Result } from "./methods.js";
import { withMethods } from "./methods.js";
import { checkedOptions } from "./options.js";
import { Posts } from "./posts.js";
import { type Handler, provideOptionNames, type ProvideOptions, Provider } from "./provider.js";
import { ErrorCode, member, readError, RpcError } from "./rpc_error.js";
import { type ConnectionEvent, Session } from "./session.js";
import { Stream } from "./stream.js";
import { type EventHandler, subscribeOptionNames, type SubscribeOptions, Subscriptions } from "./subscriptions.js";

/** Options of a client. */
export interface ConnectOptions {
  /** The client's name at a broker. */
  clientId?: string;
  /** Who it is, where the server asks for that. */
  token?: string;
  /** How a WebSocket shows the token: by `rpc.hello` (default), or in the handshake, as a subprotocol. */
  tokenBy?: "hello" | "subprotocol";
  /** Milliseconds that a call may take, and a stream without an item: 30,000. */
  timeout?: number;
  /** Integers that a number cannot hold exactly come as bigint, in results, events and params of calls. */
  bigint?: boolean;
  /** The pause after all URLs have been tried in vain, in ms, doubled each time: 50. */
  reconnectMin?: number;
  /** The longest of these pauses: 5,000. */
  reconnectMax?: number;
  /** Takes what nobody waits for: `console`. */
  log?: Log;
  /** Called when a connection has been made, and when one has ended. */
  onConnection?: (event: ConnectionEvent) => void;
  /** Called when the broker refuses a method or topic. */
  onRefused?: (name: string, error: RpcError) => void;
  /** Called when the broker has dropped events, because this client was too slow. */
  onLagged?: (topic: string, dropped: number) => void;
}

const connectOptionNames: readonly (keyof ConnectOptions)[] = [
  "clientId",
  "token",
  "tokenBy",
  "timeout",
  "bigint",
  "reconnectMin",
  "reconnectMax",
  "log",
  "onConnection",
  "onRefused",
  "onLagged",
];

export interface PublishOptions extends CallOptions {
  /** The broker keeps it for later subscribers; without a value, what it keeps is deleted. */
  retain?: boolean;
}

/** What a provider has answered to `callAll`. */
export interface Outcome<T> {
  /** The provider's name, if it has one. */
  readonly client?: string;
  readonly result?: T;
  readonly error?: RpcError;
}

/** A method that this client provides. */
export interface Registration {
  readonly name: string;
  /** Resolves when no further call comes. */
  unregister(): Promise<void>;
}

export interface Subscription {
  readonly topic: string;
  /** No event is handled any more once it is called. */
  unsubscribe(): Promise<void>;
}

/** There at once; awaited, it is what the server has accepted, or rejects. Whoever does not await it loses nothing. */
export type Pending<T> = T & PromiseLike<T>;

/** The client's own methods. */
export interface ClientFace<Api> {
  /** Calls any method. Params are an array, by position, or an object, by name. */
  call<Name extends keyof Api & string>(
    method: Name,
    params: Params | undefined,
    options?: CallOptions,
  ): Promise<Api[Name] extends AnyFunction ? Result<Api[Name]> : unknown>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the caller knows what comes
  call<T = any>(method: string, params?: Params, options?: CallOptions): Promise<T>;
  /** The results of any method, one by one. */
  stream<Name extends keyof Api & string>(
    method: Name,
    params: Params | undefined,
    options?: CallOptions,
  ): Stream<Api[Name] extends AnyFunction ? Item<Api[Name]> : unknown>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as of `call`
  stream<T = any>(method: string, params?: Params, options?: CallOptions): Stream<T>;
  /** Calls without an answer. Resolves when it has been sent, by HTTP when the server has it. */
  notify(method: string, params?: Params, options?: CallOptions): Promise<void>;
  /**
   * Several calls in one message: `fill` makes them, and what it returns is awaited, an array element by element. They
   * are sent when it has returned.
   */
  batch<T>(fill: (batch: Batch<Api>) => T): Promise<Gathered<T>>;
  /** Calls all providers of a method at a broker. */
  callAll<T = unknown>(method: string, params?: Params, options?: CallOptions): Promise<Outcome<T>[]>;
  /** Provides a method at a broker. Throws by HTTP. */
  provide(name: string, handler: Handler, options?: ProvideOptions): Pending<Registration>;
  /** Subscribes to a topic, or a pattern of topics, at a broker. Throws by HTTP. */
  subscribe<T = unknown>(topic: string, handler: EventHandler<T>, options?: SubscribeOptions): Pending<Subscription>;
  /** Publishes an event at a broker. Resolves with the number of connections that it was queued for. */
  publish(topic: string, value?: unknown, options?: PublishOptions): Promise<number>;
  /** The same client with options for all of its calls. */
  with(options: CallOptions): Client<Api>;
  /** Ends the connection, and what waits for an answer. */
  close(): Promise<void>;
}

export type Client<Api = AnyApi> = ClientFace<Api> & Omit<Methods<Api>, keyof ClientFace<Api>>;

export type Gathered<T> = T extends readonly unknown[] ? { -readonly [At in keyof T]: Awaited<T[At]> } : Awaited<T>;

/**
 * Connects to a server by `ws://` or `wss://`, or calls it by `http://` or `https://`. Of several URLs the next is
 * taken where one cannot be reached. Rejects with -32001 where none can, and with -32004 where the token is not known.
 */
export async function connect<Api = AnyApi>(
  url: string | readonly string[] = "ws://127.0.0.1:8545",
  options: ConnectOptions = {},
): Promise<Client<Api>> {
  const core = new Core(typeof url === "string" ? [url] : url, options);
  await core.session?.connect();
  return core.client() as Client<Api>;
}

const cores = new WeakMap<object, Core>();
/** Of a client. */
export function sessionOf(client: object, what: string): Session {
  const core = cores.get(client);
  if (!core) throw new TypeError("this is no client of connect");
  return core.connected(what);
}

class Core {
  readonly session: Session | undefined;
  readonly #channel: Channel & { close(): Promise<void> };
  readonly #provider: Provider;
  readonly #subscriptions: Subscriptions;
  readonly #topics = new Map<string, { declaration: Declaration; options: SubscribeOptions }>();
  readonly #timeout: number;
  readonly #bigint: boolean;

  constructor(urls: readonly string[], options: ConnectOptions) {
    checkedOptions(options, connectOptionNames, "a client");
    const log = options.log ?? console;
    this.#timeout = options.timeout ?? callTimeout;
    this.#bigint = options.bigint ?? false;
    this.#provider = new Provider(log);
    this.#subscriptions = new Subscriptions(log);
    if (urls.length === 1 && urls[0] !== undefined && /^https?:/i.test(urls[0])) {
      this.#channel = new Posts(urls[0], { token: options.token });
      return;
    }
    const wrong = urls.find((url) => !/^wss?:\/\//i.test(url));
    if (wrong !== undefined || urls.length === 0) {
      throw new TypeError(`${wrong ?? "no URL"}: a client connects to ws:// or wss://, or to one http:// or https://`);
    }
    const [timeout, bigint] = [this.#timeout, this.#bigint];
    this.session = new Session(urls, { ...options, timeout, bigint, log }, this.#provider, this.#subscriptions);
    this.#channel = this.session;
  }

  /** What a program sees of it; behind `with`, with its options. */
  client(given?: CallOptions): ClientFace<AnyApi> {
    const shared = given ?? {};
    const merged = (options?: CallOptions): CallOptions =>
      options ? { ...shared, ...checkedOptions(options, callOptionNames, "a call") } : shared;
    const caller = {
      call: (method: string, params?: Params, options?: CallOptions) => this.#call(method, params, merged(options)),
      stream: (method: string, params?: Params, options?: CallOptions) => this.#stream(method, params, merged(options)),
    };
    const face = {
      ...caller,
      notify: (method: string, params?: Params, options?: CallOptions) => {
        const sent = this.#notify(method, params, merged(options));
        sent.catch(() => undefined); // whoever does not await it does not want to know
        return sent;
      },
      batch: (fill: (batch: Batch<AnyApi>) => unknown) => this.#batch(fill, shared),
      callAll: (method: string, params?: Params, options?: CallOptions) =>
        this.#callAll(method, params, merged(options)),
      provide: (name: string, handler: Handler, options: ProvideOptions = {}) => this.#provide(name, handler, options),
      subscribe: (topic: string, handler: EventHandler, options: SubscribeOptions = {}) =>
        this.#subscribe(topic, handler, options),
      publish: (topic: string, value?: unknown, { retain, ...options }: PublishOptions = {}) =>
        this.#publish(topic, value, retain, merged(options)),
      with: (options: CallOptions) => this.client(merged(options)) as Client,
      close: () => this.#channel.close(),
    };
    const client = withMethods(face as ClientFace<AnyApi>, caller, given && {});
    cores.set(client, this);
    return client;
  }

  // ---- calls ----

  // Whatever is wrong with the arguments is the outcome of the call, too.
  async #call(method: string, params: Params | undefined, options: CallOptions): Promise<unknown> {
    return this.#made(method, params, options).by(this.#channel).promise;
  }

  #made(method: string, params: Params | undefined, options: CallOptions): Call {
    return new Call(method, checkedParams(params), this.#completed(options));
  }

  #completed(options: CallOptions): CallOptions {
    return { ...options, timeout: options.timeout ?? this.#timeout, bigint: options.bigint ?? this.#bigint };
  }

  async #notify(method: string, params: Params | undefined, options: CallOptions): Promise<void> {
    const call = new Call(method, checkedParams(params), this.#completed(options), { notification: true });
    await call.by(this.#channel).promise;
  }

  #stream(method: string, params: Params | undefined, options: CallOptions): Stream {
    checkedParams(params);
    return new Stream({
      credited: this.session !== undefined,
      gap: this.#timeout,
      start: (sink: ItemSink) => {
        // Without a timeout of its own it may last: #timeout is for each item.
        const call = new Call(method, params, { ...options, bigint: options.bigint ?? this.#bigint }, { sink });
        return call.by(this.#channel);
      },
      credit: (call, items) => {
        const params = `{"id":${String(call.id)},"n":${String(items)}}`;
        this.session?.say(`{"jsonrpc":"2.0","method":"rpc.credit","params":${params}}`);
      },
    });
  }

  async #batch(fill: (batch: Batch<AnyApi>) => unknown, shared: CallOptions): Promise<unknown> {
    const calls = new BatchCalls((method, params, options, notification) => {
      const merged = this.#completed({ ...shared, ...checkedOptions(options, callOptionNames, "a call") });
      return new Call(method, checkedParams(params), merged, { notification });
    });
    let filled: unknown;
    try {
      filled = fill(withMethods(calls.face, calls.face) as Batch<AnyApi>);
    } catch (error) {
      calls.drop(error);
      throw error;
    }
    calls.send(this.#channel);
    return Array.isArray(filled) ? Promise.all(filled as unknown[]) : await filled;
  }

  async #callAll(method: string, params: Params | undefined, options: CallOptions): Promise<Outcome<never>[]> {
    const outcomes = await this.#call("rpc.call_all", { method, params: checkedParams(params) }, options);
    return (Array.isArray(outcomes) ? (outcomes as object[]) : []).map((outcome) => {
      const error = member(outcome, "error");
      return error === undefined ? outcome : { ...outcome, error: readError(error) };
    });
  }

  // ---- at a broker ----

  async #publish(topic: string, value: unknown, retain: boolean | undefined, options: CallOptions): Promise<number> {
    return (await this.#call("rpc.publish", { topic, params: paramsOf(value), retain }, options)) as number;
  }

  #provide(name: string, handler: Handler, options: ProvideOptions): Pending<Registration> {
    const session = this.connected("provide");
    checkedOptions(options, provideOptionNames, "provide");
    const declaration = new Declaration("method", name, this.#provider.add(name, handler, options));
    if (options.register ?? true) session.declare(declaration);
    else declaration.accept();
    const unregister = async (): Promise<void> => {
      await session.withdraw(declaration);
      this.#provider.remove(name, handler);
    };
    declaration.promise.catch(() => {
      this.#provider.remove(name, handler);
    });
    return pending<Registration>({ name, unregister }, declaration);
  }

  #subscribe(topic: string, handler: EventHandler, options: SubscribeOptions): Pending<Subscription> {
    const session = this.connected("subscribe");
    checkedOptions(options, subscribeOptionNames, "subscribe");
    const declaration = this.#topic(session, topic, options);
    const subscriber = { topic, handler };
    this.#subscriptions.add(subscriber);
    const unsubscribe = async (): Promise<void> => {
      if (!this.#subscriptions.remove(subscriber) || this.#subscriptions.has(topic)) return;
      this.#topics.delete(topic);
      await session.withdraw(declaration);
    };
    declaration.promise.catch(() => {
      this.#subscriptions.remove(subscriber);
      if (this.#topics.get(topic)?.declaration === declaration) this.#topics.delete(topic);
    });
    return pending<Subscription>({ topic, unsubscribe }, declaration);
  }

  // A broker keeps one subscription of a connection to a topic, so those of this client share it.
  #topic(session: Session, topic: string, options: SubscribeOptions): Declaration {
    const known = this.#topics.get(topic);
    if (!known) {
      const declaration = new Declaration("topic", topic, { topic, ...options });
      this.#topics.set(topic, { declaration, options });
      session.declare(declaration);
      return declaration;
    }
    const { declaration } = known;
    if (known.options.group !== options.group || Boolean(known.options.echo) !== Boolean(options.echo)) {
      throw new TypeError(`subscriptions of a client to ${topic} have the same group and echo`);
    }
    if (options.last) {
      declaration.params = { topic, ...options };
      session.declare(declaration);
    }
    return declaration;
  }

  /** Throws by HTTP. */
  connected(what: string): Session {
    if (this.session) return this.session;
    const reason = { reason: "needs_connection" };
    throw new RpcError(ErrorCode.invalidRequest, `${what} needs a connection: connect by ws:// or wss://`, reason);
  }
}

/** Of an event with that value. */
export function paramsOf(value: unknown): unknown {
  // A date, for one, is an object here and a string there.
  const json = (value as { toJSON?: () => unknown } | null | undefined)?.toJSON?.() ?? value;
  const scalar = typeof json !== "object" || json === null;
  return value === undefined ? undefined : scalar ? [value] : value;
}

export function checkedParams(params: Params | undefined): Params | undefined {
  if (params === undefined || (typeof params === "object" && (params as unknown) !== null)) return params;
  throw new TypeError("params are an array or an object: put a single value in an array");
}

export function pending<T extends object>(handle: T, declaration: Declaration): Pending<T> {
  const promise = declaration.promise.then(() => handle);
  promise.catch(() => undefined);
  return Object.assign(promise, handle);
}
