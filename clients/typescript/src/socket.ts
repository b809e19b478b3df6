// The class of WebSockets: the browser's or Node's own, and where there is none (Node before 22) that of the package `ws`.
export type SocketClass = new (url: string, protocols?: string[]) => WebSocket;

export async function socketClass(): Promise<SocketClass> {
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
