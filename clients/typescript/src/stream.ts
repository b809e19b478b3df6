// Stream: the results of one call, one by one, for `for await`. The reader keeps the credit: the server may have so many
// items on their way, and is given more as they are taken. Whoever leaves the loop cancels the call. The call is made
// when the first item is asked for.
import { type Call, type ItemSink, timerMax } from "./call.js";
import { ErrorCode, localError, RpcError } from "./rpc_error.js";

/** Items that may be on their way. */
export const streamCredit = 64;

/** What a stream asks of its client. */
export interface StreamSource {
  /** Whether its transport has credit; else it is read no faster than its items are taken. */
  readonly credited: boolean;
  /** Makes the call. */
  start(sink: ItemSink): Call;
  /** Gives the server credit for so many more items. */
  credit(call: Call, items: number): void;
  /** The longest time without an item, in ms, while the reader waits for one. */
  readonly gap: number;
}

interface Waiting<T> {
  resolve(result: IteratorResult<T, undefined>): void;
  reject(error: unknown): void;
}

const finished: IteratorReturnResult<undefined> = { done: true, value: undefined };

export class Stream<T = unknown> implements AsyncIterableIterator<T, undefined> {
  readonly #source: StreamSource;
  #items: T[] = [];
  #next = 0; // of #items: what is before it has been taken
  readonly #waiting: Waiting<T>[] = [];
  #call: Call | undefined;
  #received = 0;
  #taken = 0;
  /** Items that were allowed in all. */
  #allowed: number;
  #roomy: (() => void) | undefined;
  #ended = false;
  #failure: { error: unknown } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Streams come from a client: `client.count.stream(10)`. */
  constructor(source: StreamSource) {
    this.#source = source;
    this.#allowed = source.credited ? streamCredit : Infinity;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next item. Rejects with what has ended the call. */
  async next(): Promise<IteratorResult<T, undefined>> {
    if (!this.#ended) this.#start();
    if (this.#next < this.#items.length) {
      const value = this.#items[this.#next++] as T;
      if (this.#next === this.#items.length) {
        this.#items = [];
        this.#next = 0;
      }
      this.#took();
      return { done: false, value };
    }
    if (this.#ended) {
      const failure = this.#failure;
      this.#failure = undefined;
      if (failure) throw failure.error;
      return finished;
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#watch();
    });
  }

  /** Ends it, and cancels the call if it goes on. Leaving a `for await` does this. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.#cancel();
    this.#items = [];
    this.#next = 0;
    this.#roomy?.();
    return Promise.resolve(finished);
  }

  #start(): void {
    if (this.#call) return;
    const sink: ItemSink = {
      credit: streamCredit,
      item: (seq, value) => {
        this.#arrived(seq, value);
      },
      room: async () => {
        if (this.#ended || this.#items.length - this.#next < streamCredit) return;
        await new Promise<void>((resolve) => (this.#roomy = resolve));
      },
    };
    const call = this.#source.start(sink);
    this.#call = call;
    call.promise.then(
      (result) => {
        this.#end(result);
      },
      (error: unknown) => {
        this.#fail(error);
      },
    );
  }

  #arrived(seq: unknown, value: unknown): void {
    if (this.#ended) return;
    if (seq !== this.#received || this.#received >= this.#allowed) {
      const wrong = seq !== this.#received ? "items of a stream are missing" : "a stream has exceeded its credit";
      this.#call?.giveUp(localError(ErrorCode.invalidRequest, wrong, "maybe"));
      return;
    }
    this.#received++;
    this.#give(value as T);
  }

  #give(item: T): void {
    const waiting = this.#waiting.shift();
    if (!waiting) {
      this.#items.push(item);
      return;
    }
    clearTimeout(this.#timer);
    this.#took();
    waiting.resolve({ done: false, value: item });
    if (this.#waiting.length > 0) this.#watch();
  }

  // More credit comes by halves of a window, not by items: a message for each would cost as much as the items.
  #took(): void {
    this.#taken++;
    if (this.#items.length - this.#next < streamCredit) this.#roomy?.();
    const owed = this.#taken + streamCredit - this.#allowed;
    if (!this.#source.credited || this.#ended || !this.#call || this.#call.over || owed < streamCredit / 2) return;
    this.#allowed += owed;
    this.#source.credit(this.#call, owed);
  }

  // A server that knows no streams answers with all results at once, a method of one result with that.
  #end(result: unknown): void {
    if (this.#ended) return;
    if (this.#received === 0 && result !== null && result !== undefined) {
      for (const item of Array.isArray(result) ? (result as T[]) : [result as T]) this.#give(item);
    }
    this.#ended = true;
    clearTimeout(this.#timer);
    for (const waiting of this.#waiting.splice(0)) waiting.resolve(finished);
  }

  #fail(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#roomy?.();
    clearTimeout(this.#timer);
    const [first, ...others] = this.#waiting.splice(0);
    if (first) first.reject(error);
    else this.#failure = { error };
    for (const waiting of others) waiting.resolve(finished);
  }

  #cancel(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#timer);
    this.#call?.giveUp(new RpcError(ErrorCode.cancelled, "Cancelled"));
    for (const waiting of this.#waiting.splice(0)) waiting.resolve(finished);
  }

  #watch(): void {
    clearTimeout(this.#timer);
    if (this.#source.gap > timerMax) return;
    this.#timer = setTimeout(() => {
      this.#call?.giveUp(localError(ErrorCode.timeout, "Timeout", "maybe", { reason: "no item in time" }));
    }, this.#source.gap);
  }
}
