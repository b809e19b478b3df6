// RpcError: a JSON-RPC error object as an exception. It is what a call fails with, and what a handler throws to answer
// with a code of its own. The codes are those of JSON-RPC 2.0 section 5.1, and wirecall's (docs/errors.md).

/** The codes that have a meaning of their own. Every other integer outside -32768 to -32000 is an application's. */
export const ErrorCode = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  serverError: -32000,
  providerLost: -32001,
  timeout: -32002,
  forbidden: -32003,
  unauthenticated: -32004,
  limitExceeded: -32005,
  tooLarge: -32006,
  conflict: -32007,
  noSuchSubscription: -32008,
  draining: -32009,
  cancelled: -32800,
} as const;

/** Whether a call has reached its handler: after `"no"` calling again is safe, after `"maybe"` it may run twice. */
export type Delivered = "no" | "maybe";

export interface ErrorObject {
  code: number;
  message: string;
  data?: unknown;
}

export class RpcError extends Error {
  static {
    // On the prototype, since the stack takes it from there before any field is set.
    this.prototype.name = "RpcError";
  }

  readonly code: number;
  /** What the peer has said beside the message; undefined for nothing. */
  readonly data: unknown;

  /**
   * @param code an integer of 32 bits; a handler's own lies outside -32768 to -32000
   * @param data whatever JSON can hold
   */
  constructor(code: number, message: string, data?: unknown, options?: ErrorOptions) {
    const more = explanation(data);
    super(`${message} (${String(code)})${more && `: ${more}`}`, options);
    // A program that does not catch it prints the stack, which begins with this longer text; the message is the peer's.
    const { stack } = this;
    this.message = message;
    if (stack !== undefined) this.stack = stack;
    this.code = code;
    this.data = data;
  }

  /** `data.delivered`, where wirecall or this client has said it. */
  get delivered(): Delivered | undefined {
    const said = member(this.data, "delivered");
    return said === "no" || said === "maybe" ? said : undefined;
  }

  /** The error object, as it is sent. */
  toJSON(): ErrorObject {
    const { code, message, data } = this;
    return data === undefined ? { code, message } : { code, message, data };
  }
}

/** An error that this client makes without an answer of the server, in the form of wirecall's own. */
export function localError(
  code: number,
  message: string,
  delivered: Delivered,
  data: { reason?: string; limit?: string } = {},
  options?: ErrorOptions,
): RpcError {
  return new RpcError(code, message, { ...data, origin: "local", delivered }, options);
}

/** Of what no server has answered. */
export function lost(message: string, delivered: Delivered, options?: ErrorOptions): RpcError {
  return localError(ErrorCode.providerLost, message, delivered, {}, options);
}

export function closed(delivered: Delivered = "no"): RpcError {
  return lost("the client is closed", delivered);
}

/** Of a message that the server would not take. */
export function tooLarge(delivered: Delivered): RpcError {
  return localError(ErrorCode.tooLarge, "Too large", delivered, { limit: "max_message_size" });
}

/** Reads the member `error` of a response. A peer may have put anything there. */
export function readError(received: unknown): RpcError {
  const code = member(received, "code");
  const message = member(received, "message");
  if (typeof code === "number" && Number.isInteger(code) && typeof message === "string") {
    return new RpcError(code, message, member(received, "data"));
  }
  return new RpcError(ErrorCode.invalidRequest, "the answer is no JSON-RPC response", received);
}

/** Of an object; undefined for anything else. */
export function member(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined;
}

// In the words of the command.
function explanation(data: unknown): string {
  const parts: string[] = [];
  const also = member(data, "also");
  for (const wrong of [data, ...(Array.isArray(also) ? (also as unknown[]) : [])]) {
    const loc = member(wrong, "loc");
    if (Array.isArray(loc)) {
      parts.push(`at ${loc.join(".")}, expected ${text(wrong, "expected")}, got ${text(wrong, "got")}`);
    }
    const near = member(wrong, "did_you_mean");
    if (typeof near === "string") parts.push(`did you mean '${near}'?`);
  }
  const reason = member(data, "reason");
  if (typeof reason === "string" && parts.length === 0) parts.push(reason);
  return parts.join("; ");
}

function text(value: unknown, name: string): string {
  return String(member(value, name));
}
