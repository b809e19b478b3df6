// What a client leaves when it is closed, or its connection is lost: no socket, no timer, no listener, no call.
import { getEventListeners } from "node:events";
import { createServer, type Server as TcpServer, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type CallContext, type Client, connect, type ConnectOptions } from "../src/index.js";
import { deferred, failure } from "./failure.js";
import { type Peer, ScriptedServer } from "./scripted_server.js";
import { type Timers, watchTimers } from "./timers.js";

let server: ScriptedServer;
let timers: Timers;
beforeEach(async () => {
  timers = watchTimers();
  server = await ScriptedServer.start();
});
afterEach(async () => {
  timers.restore();
  await server.stop();
});

/** A client, its peer, and when the client has noticed that the connection is lost. */
async function open(options: ConnectOptions = {}): Promise<[Client, Peer, Promise<void>]> {
  const lost = deferred();
  const connecting = connect(server.url, {
    reconnectMin: 1,
    reconnectMax: 1,
    ...options,
    onConnection: (event) => {
      if (!event.connected) lost.resolve();
    },
  });
  const peer = await server.peer();
  await peer.greet();
  return [await connecting, peer, lost.promise];
}

/** Those of closing sockets end with them, which is noticed a moment later. */
const noTimer = (): Promise<void> =>
  vi.waitFor(() => {
    expect(timers.left()).toEqual([]);
  });

const refusal = (code: number, more: object = {}): object => ({
  code,
  message: "Refused",
  data: { origin: "local", delivered: "no", ...more },
});

describe("close", () => {
  it("ends a connection whose hello has no answer yet", async () => {
    const [client, peer, lost] = await open();
    peer.socket.terminate();
    await lost;
    const waiting = failure(client.later());
    const next = await server.peer();
    await next.got("rpc.hello");
    await client.close();
    expect(await next.closed).toBe(1000);
    expect((await waiting).delivered).toBe("no");
    await noTimer();
  }, 10_000);

  it("ends a handshake that has no answer yet", async () => {
    const [client, , lost] = await open();
    const { port } = server;
    await server.stop();
    await lost;
    // Whatever connects now is taken, and hears nothing.
    const silent: TcpServer = createServer();
    const accepted = new Promise<Socket>((resolve) => silent.on("connection", resolve));
    await new Promise<void>((resolve) => silent.listen(port, "127.0.0.1", resolve));
    const waiting = failure(client.later());
    const socket = await accepted;
    socket.on("error", () => undefined);
    const gone = new Promise((resolve) => socket.on("close", resolve));
    socket.resume();
    await client.close();
    await gone;
    expect((await waiting).code).toBe(-32001);
    await noTimer();
    await new Promise((resolve) => silent.close(resolve));
    server = await ScriptedServer.start();
  }, 10_000);

  it("twice is done once, and both wait for the end", async () => {
    const [client, peer] = await open();
    await Promise.all([client.close(), client.close()]);
    await client.close();
    expect(await peer.closed).toBe(1000);
    await noTimer();
  });

  it("ends a refused call that was to be made again later", async () => {
    const [client, peer] = await open();
    const busy = failure(client.busy());
    peer.refuse(await peer.got("busy"), refusal(-32005, { retry_after_ms: 20_000 }));
    peer.say({ jsonrpc: "2.0", method: "rpc.ping", id: 1 });
    await peer.next();
    await client.close();
    expect(await busy).toMatchObject({ code: -32001, delivered: "no" });
    await noTimer();
  });
});

it("a refused call that is cancelled is not made again, and has no timer", async () => {
  const [client, peer] = await open();
  const stop = new AbortController();
  const busy = failure(client.busy.with({ signal: stop.signal })());
  peer.refuse(await peer.got("busy"), refusal(-32005, { retry_after_ms: 20_000 }));
  peer.say({ jsonrpc: "2.0", method: "rpc.ping", id: 1 });
  await peer.next();
  stop.abort();
  expect((await busy).code).toBe(-32800);
  await noTimer();
  await client.close();
});

it("a connection that is lost while several methods are registered leaves no call of its own", async () => {
  const [client, peer] = await open();
  const both = Promise.all([client.provide("a", () => 1), client.provide("b", () => 2)]);
  for (const request of await peer.gotAll("rpc.register", 2)) peer.answer(request, 1);
  await both;
  peer.socket.terminate();
  const next = await server.peer();
  await next.greet();
  await next.got("rpc.register");
  next.socket.terminate();
  const third = await server.peer();
  await third.greet();
  third.answer(await third.got("rpc.register"), 2);
  const call = client.call("f");
  third.answer(await third.got("f"), 1);
  await call;
  await noTimer();
  await client.close();
});

it("a call that is cancelled before it is made listens to nobody", async () => {
  const [client] = await open();
  const served = new AbortController();
  const within: CallContext = { method: "m", signal: served.signal, caller: undefined, remaining: Infinity, hops: 0 };
  const signal = AbortSignal.abort();
  expect((await failure(client.f.with({ within, signal })())).code).toBe(-32800);
  expect(getEventListeners(served.signal, "abort")).toEqual([]);
  const stop = new AbortController();
  const calls = [failure(client.f.with({ within, signal: stop.signal })()), failure(client.g.with({ within })())];
  served.abort();
  await Promise.all(calls);
  for (const one of [served, stop]) expect(getEventListeners(one.signal, "abort")).toEqual([]);
  await client.close();
});

describe("a hello that is refused for the moment", () => {
  it("is the outcome of connect", async () => {
    const connecting = failure(connect(server.url));
    const peer = await server.peer();
    peer.refuse(await peer.got("rpc.hello"), refusal(-32009));
    expect((await connecting).code).toBe(-32009);
    await noTimer();
  }, 10_000);

  it("has the next server asked, and is not said there", async () => {
    const other = await ScriptedServer.start();
    const connecting = connect([server.url, other.url]);
    const peer = await server.peer();
    peer.refuse(await peer.got("rpc.hello"), refusal(-32005, { retry_after_ms: 1 }));
    const next = await other.peer();
    await next.greet();
    const client = await connecting;
    const call = client.f();
    next.answer(await next.got("f"), 1);
    await call;
    expect(next.received.map(({ method }) => method as string)).toEqual(["rpc.hello", "f"]);
    await client.close();
    await other.stop();
  }, 10_000);
});

it("a server that accepts and closes in one breath is as good as gone", async () => {
  const { createHash } = await import("node:crypto");
  const rude = createServer((socket) => {
    let head = "";
    socket.on("error", () => undefined);
    socket.on("data", (data) => {
      head += data.toString("latin1");
      const key = /sec-websocket-key: (.*)\r\n(?:.*\r\n)*\r\n/i.exec(head)?.[1];
      if (key === undefined) return;
      const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
      const text = `HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
      // RFC 6455 section 5.5.1: a close frame, code 1013.
      socket.end(Buffer.concat([Buffer.from(text), Buffer.from([0x88, 2, 0x03, 0xf5])]));
    });
  });
  await new Promise<void>((resolve) => rude.listen(0, "127.0.0.1", resolve));
  const error = await failure(connect(`ws://127.0.0.1:${String((rude.address() as AddressInfo).port)}`));
  expect(error.code).toBe(-32001);
  await noTimer();
  await new Promise((resolve) => rude.close(resolve));
}, 10_000);

describe("a frame that breaks WebSocket's rules", () => {
  it.each([
    ["with reserved bits", [0xf1, 1, 65]],
    ["of a GiB", [0x82, 127, 0, 0, 0, 0, 0x40, 0, 0, 0]],
    ["that is no UTF-8", [0x81, 1, 0xff]],
  ])("%s ends the connection, and no more than that", async (_what, bytes) => {
    const [client, peer, lost] = await open();
    const call = failure(client.f());
    await peer.got("f");
    (peer.socket as unknown as { _socket: Socket })._socket.write(Buffer.from(bytes));
    expect(await call).toMatchObject({ code: -32001, delivered: "maybe" });
    await lost;
    const again = client.g();
    const next = await server.peer();
    await next.greet();
    next.answer(await next.got("g"), 2);
    expect(await again).toBe(2);
    await client.close();
  });
});
