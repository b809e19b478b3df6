// Why a server cannot be reached, and what helps, in the words of an error. Node tells a cause, the WebSocket of Node 22
// and later excepted; a browser tells none, on purpose.
import { type Delivered, lost, member, type RpcError } from "./rpc_error.js";

/** -32001; `error` is what was thrown, or what an event has brought, and its cause is looked at first. */
export function unreachable(url: string, error: unknown, delivered: Delivered): RpcError {
  const reason = member(error, "cause") ?? error;
  const { code = "", message = "" } = (reason ?? {}) as { code?: string; message?: string };
  // What OpenSSL says of a certificate; its alerts (ERR_SSL_…) are the server's, about ours.
  const untrusted = /^(?!ERR_SSL).*CERT|^UNABLE_TO|^HOSTNAME/.test(code);
  const trust = "trust its certificate, in Node by NODE_EXTRA_CA_CERTS";
  const tls = /^(wss|https):/i.test(url) ? `, ${trust}` : "";
  const cure = untrusted
    ? `the certificate is refused (${code}); ${trust}`
    : `start the server, check the address${tls}, or allow this page's origin there`;
  return lost(
    `cannot connect to ${url}: ${[message, code].find(Boolean) ?? "no answer"}; ${cure}`,
    untrusted || code === "ECONNREFUSED" || code === "ENOTFOUND" ? "no" : delivered,
    { cause: error },
  );
}
