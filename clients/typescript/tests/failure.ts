import { expect } from "vitest";
import { RpcError } from "../src/index.js";

/** What a promise is rejected with. */
export async function failure(promise: PromiseLike<unknown>): Promise<RpcError> {
  const error = await promise.then(
    () => new Error("it was fulfilled"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RpcError);
  return error as RpcError;
}

/** A promise, and who settles it. */
export function deferred<T = void>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((fulfil) => {
    resolve = fulfil;
  });
  return { promise, resolve };
}
