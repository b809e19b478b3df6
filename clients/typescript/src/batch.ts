// Batch: several calls and notifications in one message, answered together. Each has its own outcome.
import type { Call, CallOptions, Channel, Params } from "./call.js";
import type { Methods } from "./methods.js";

export interface BatchFace {
  /** A call of any method, as of a client. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the caller knows what comes
  call<T = any>(method: string, params?: Params, options?: CallOptions): Promise<T>;
  notify(method: string, params?: Params, options?: CallOptions): Promise<void>;
}

export type Batch<Api> = BatchFace & Omit<Methods<Api>, keyof BatchFace>;

type Make = (method: string, params: Params | undefined, options: CallOptions, notification: boolean) => Call;

export class BatchCalls {
  readonly face: BatchFace;
  readonly #calls: Call[] = [];
  #sent = false;

  constructor(make: Make) {
    const add = (method: string, params?: Params, options: CallOptions = {}, notification = false): Call => {
      if (this.#sent) throw new TypeError("the batch has been sent");
      const call = make(method, params, options, notification);
      this.#calls.push(call);
      return call;
    };
    this.face = {
      // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
      call: (method, params, options) => add(method, params, options).promise as Promise<any>,
      notify: (method, params, options) => {
        const { promise } = add(method, params, options, true);
        promise.catch(() => undefined); // whoever does not await it does not want to know
        return promise as Promise<void>;
      },
    };
  }

  send(channel: Channel): void {
    this.#sent = true;
    const calls = this.#calls.filter((call) => !call.over); // but those that were cancelled meanwhile
    for (const call of calls) call.carriedBy(channel);
    if (calls.length > 0) channel.send(calls, true);
  }

  /** What made them has failed. */
  drop(error: unknown): void {
    this.#sent = true;
    for (const call of this.#calls) {
      call.promise.catch(() => undefined);
      call.fail(error);
    }
  }
}
