// Whether a call that was refused is made again.
import { type Call, timerMax } from "./call.js";
import { ErrorCode, member, type RpcError } from "./rpc_error.js";

/**
 * The pause after which a refused call is made again; undefined where that is not safe, or would not help. wirecall
 * itself has refused it, which its code tells together with `origin`: a handler has run by the time that it fails.
 */
export function retryPause(call: Call, error: RpcError): number | undefined {
  const { code, data } = error;
  const own = code <= ErrorCode.providerLost && code >= ErrorCode.draining;
  // Who may not do it now may not do it a moment later.
  const forGood = code === ErrorCode.forbidden || code === ErrorCode.unauthenticated;
  if (call.over || call.retried || !own || forGood || error.delivered !== "no") return undefined;
  if (typeof member(data, "origin") !== "string") return undefined;
  const after = member(data, "retry_after_ms");
  const told = typeof after === "number" && after >= 0 ? after : undefined;
  const pause = Math.min(
    timerMax,
    told ?? (code === ErrorCode.providerLost || code === ErrorCode.limitExceeded ? 20 : 0),
  );
  return pause < call.remaining ? pause : undefined;
}
