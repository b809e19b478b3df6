// Call: one request or notification of ours, from its making to its one outcome. It counts its own time and hears its
// caller's signal; a Channel carries it, and is told when the caller no longer waits.
import type { CallContext } from "./call_context.js";
import { encode } from "./json.js";
import { ErrorCode, localError, type RpcError } from "./rpc_error.js";

export type Params = readonly unknown[] | object;

/** Options of one call. */
export interface CallOptions {
  /** Milliseconds that the call may take, connecting included. The server is told. 0 is over at once. */
  timeout?: number | undefined;
  /** Cancels the call: it ends with -32800, its `cause` is the signal's reason, and the server is told. */
  signal?: AbortSignal | undefined;
  /** The name of the client that is to serve the call, and no other. At a broker. */
  to?: string | undefined;
  /** Integers in the result that a number cannot hold exactly are bigint. */
  bigint?: boolean | undefined;
  /** The call of a provided method that this one is part of: its time, its end and its hops are this one's too. */
  within?: CallContext | undefined;
}

export const callOptionNames: readonly string[] = ["timeout", "signal", "to", "bigint", "within"];

/** Where the items of a streamed call go. */
export interface ItemSink {
  /** Items that may be on their way at first. */
  readonly credit: number;
  item(seq: unknown, value: unknown): void;
  /** Resolves when the reader has taken enough of them, or wants no more: where there is no credit, nothing is read. */
  room(): Promise<void>;
}

/** What carries calls to a server. */
export interface Channel {
  /** Sends them as one message, an array if `batch`; each ends by itself. */
  send(calls: readonly Call[], batch: boolean): void;
  /** The caller of this one no longer waits. */
  abandon(call: Call): void;
}

/** The longest time that setTimeout counts; a longer one is no limit. */
export const timerMax = 2 ** 31 - 1;
/** The server's own limit, which it need not be told. */
export const callTimeout = 30_000;

let lastId = 0;

export class Call {
  /** undefined for a notification, which is over when it has been sent. */
  readonly id: number | undefined;
  readonly method: string;
  readonly promise: Promise<unknown>;
  readonly exact: boolean;
  readonly sink: ItemSink | undefined;
  /** Whether the server may have seen it. */
  sent = false;
  retried = false;
  /** Where it waits for a connection: why there was none. */
  obstacle: RpcError | undefined;
  over = false;

  readonly #members: string;
  readonly #deadline: number;
  readonly #tellsTimeout: boolean;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #channel: Channel | undefined;
  #unlisten: (() => void)[] = [];
  #resolve!: (value: unknown) => void;
  #reject!: (error: unknown) => void;

  /** TypeError for params that cannot be sent. */
  constructor(
    method: string,
    params: Params | undefined,
    options: CallOptions,
    kind: { notification?: boolean; sink?: ItemSink | undefined } = {},
  ) {
    this.method = method;
    this.id = kind.notification ? undefined : ++lastId;
    this.exact = options.bigint ?? false;
    this.sink = kind.sink;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    const { within } = options;
    this.#members = [
      `"jsonrpc":"2.0","method":${encode(method)}`,
      params === undefined ? "" : `"params":${encode(params)}`,
      options.to === undefined ? "" : `"to":${encode(options.to)}`,
      within ? `"hops":${String(within.hops + 1)}` : "",
    ]
      .filter(Boolean)
      .join();

    const timeout = Math.min(options.timeout ?? Infinity, within?.remaining ?? Infinity);
    if (Number.isNaN(timeout) || timeout < 0) throw new TypeError(`timeout: ${String(timeout)} is no time in ms`);
    // Without a time of its own a stream may last: the reader counts from item to item.
    this.#tellsTimeout = timeout !== callTimeout && timeout <= timerMax;
    this.#deadline = performance.now() + timeout;
    if (timeout <= timerMax)
      this.#timer = setTimeout(() => {
        this.#timedOut();
      }, timeout);
    for (const signal of [options.signal, within?.signal]) this.#listen(signal);
  }

  /** Sends it; its outcome comes by `promise`. */
  by(channel: Channel): this {
    if (this.over) return this; // cancelled before it began
    this.#channel = channel;
    channel.send([this], false);
    return this;
  }

  /** The same as one of a batch, which its channel sends. */
  carriedBy(channel: Channel): void {
    this.#channel = channel;
  }

  /** Its text, with the time that it has left now; of a stream with its first credit. */
  text(withCredit = true): string {
    const left = Math.max(0, Math.ceil(this.#deadline - performance.now()));
    const timeout = this.#tellsTimeout && this.id !== undefined ? `,"timeout_ms":${String(left)}` : "";
    const stream = withCredit && this.sink ? `,"stream":${String(this.sink.credit)}` : "";
    return `{${this.#members}${stream}${timeout}${this.id === undefined ? "" : `,"id":${String(this.id)}`}}`;
  }

  get remaining(): number {
    return this.#deadline - performance.now();
  }

  succeed(result: unknown): void {
    if (this.#end()) this.#resolve(result);
  }

  fail(error: unknown): void {
    if (this.#end()) this.#reject(error);
  }

  /** Ends it from this side, and tells whoever carries it. */
  giveUp(error: unknown): void {
    if (this.over) return;
    this.fail(error);
    this.#channel?.abandon(this);
  }

  get delivered(): "no" | "maybe" {
    return this.sent ? "maybe" : "no";
  }

  #timedOut(): void {
    const late = this.sent ? undefined : this.obstacle;
    this.giveUp(late ?? localError(ErrorCode.timeout, "Timeout", this.delivered, { reason: "no answer in time" }));
  }

  #listen(signal: AbortSignal | undefined): void {
    if (!signal || this.over) return;
    const cancel = (): void => {
      const reason = { reason: "the call was cancelled" };
      this.giveUp(localError(ErrorCode.cancelled, "Cancelled", this.delivered, reason, { cause: signal.reason }));
    };
    if (signal.aborted) {
      cancel();
      return;
    }
    signal.addEventListener("abort", cancel);
    this.#unlisten.push(() => {
      signal.removeEventListener("abort", cancel);
    });
  }

  #end(): boolean {
    if (this.over) return false;
    this.over = true;
    clearTimeout(this.#timer);
    for (const unlisten of this.#unlisten) unlisten();
    return true;
  }
}

/** One message of them. */
export function messageOf(calls: readonly Call[], batch: boolean, withCredit = true): string {
  const texts = calls.map((call) => call.text(withCredit));
  return batch ? `[${texts.join()}]` : texts.join();
}
