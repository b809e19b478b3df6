// Declaration: what a client says to its broker on each connection: a method that it provides, a topic that it
// subscribes to. The first answer settles its promise; a refusal of what was accepted before is told to the client.
import type { RpcError } from "./rpc_error.js";

export class Declaration {
  readonly promise: Promise<void>;
  accepted = false;
  #resolve!: () => void;
  #reject!: (error: RpcError) => void;

  /** @param params of one method in `rpc.register`, or of `rpc.subscribe` */
  constructor(
    readonly kind: "method" | "topic",
    readonly name: string,
    public params: object,
  ) {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    // Whoever does not await it is told otherwise.
    this.promise.catch(() => undefined);
  }

  accept(): void {
    this.accepted = true;
    this.#resolve();
  }

  refuse(error: RpcError): void {
    this.#reject(error);
  }
}
