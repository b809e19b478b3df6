// Opens a WebSocket: the browser's or Node's own, and where there is none (Node before 22) that of the package `ws`.
import { base64url } from "./json.js";
import { ErrorCode, localError } from "./rpc_error.js";

export interface SocketOptions {
  /** Shown in the handshake, as a subprotocol: a browser can set no header. */
  token?: string | undefined;
  /** Milliseconds until it has to be open. */
  timeout: number;
}

type SocketClass = new (url: string, protocols?: string[]) => WebSocket;

/** Resolves with an open one; rejects with -32001, delivered "no". */
export async function openSocket(url: string, options: SocketOptions): Promise<WebSocket> {
  const Socket = await socketClass();
  const protocols = options.token === undefined ? [] : ["jsonrpc", `bearer.${base64url(options.token)}`];
  return new Promise((resolve, reject) => {
    const socket = new Socket(url, protocols);
    let detail = "no WebSocket was opened";
    const fail = (): void => {
      clearTimeout(timer);
      const cure = "start the server, check the address, or allow this page's origin there";
      const message = `cannot connect to ${url}: ${detail}; ${cure}`;
      reject(localError(ErrorCode.providerLost, message, "no"));
    };
    const timer = setTimeout(() => {
      detail = "no answer in time";
      fail();
      socket.close();
    }, options.timeout);
    socket.onopen = (): void => {
      clearTimeout(timer);
      resolve(socket);
    };
    // A browser says nothing more, on purpose; Node has the cause.
    socket.onerror = (event): void => {
      const { message, error } = event as { message?: string; error?: { message?: string; code?: string } };
      detail = [message, error?.message, error?.code].find(Boolean) ?? detail;
      fail(); // Node's own says no more than this
    };
    socket.onclose = fail;
  });
}

async function socketClass(): Promise<SocketClass> {
  if (typeof WebSocket !== "undefined") return WebSocket;
  // Named by a variable, so that a bundler for browsers, which have their own, does not look for it.
  const name = "ws";
  try {
    const { WebSocket: Socket } = (await import(/* @vite-ignore */ /* webpackIgnore: true */ name)) as {
      WebSocket: SocketClass;
    };
    return Socket;
  } catch (cause) {
    throw new TypeError("this engine has no WebSocket: take Node 22 or later, or npm install ws", { cause });
  }
}
