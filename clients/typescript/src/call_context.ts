// CallContext: what a provided method may know of the call that it serves. Its handler, where it is a `function`, has it
// as `this`.

export interface CallContext {
  readonly method: string;
  /** Aborted when the caller cancels or leaves, the call's time is up, or the connection is lost. */
  readonly signal: AbortSignal;
  /** The caller's name, where the broker discloses callers. */
  readonly caller: string | undefined;
  /** Milliseconds that the call has left; Infinity where it has no limit. */
  readonly remaining: number;
  /** Calls within calls that have led here. */
  readonly hops: number;
}
