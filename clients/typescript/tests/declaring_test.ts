// In which order, and how often, a client says on each connection what it provides and subscribes to.
import { beforeEach, expect, it, vi } from "vitest";
import type { Client } from "../src/index.js";
import { failure } from "./failure.js";
import type { Message, Peer } from "./scripted_server.js";
import { open, serveEachTest, server } from "./scripted_session.js";

let client: Client;
let peer: Peer;
const onRefused = vi.fn();
serveEachTest();
beforeEach(async () => {
  onRefused.mockReset();
  [client, peer] = await open({ reconnectMax: 1, onRefused });
});

const said = (by: Peer): string[] => by.received.map(({ method }) => method as string);

it("methods come before topics, whichever was there first", async () => {
  const subscribed = client.subscribe("news", () => 0);
  peer.answer(await peer.got("rpc.subscribe"), true);
  await subscribed;
  const provided = client.provide("mine", () => 1);
  peer.answer(await peer.got("rpc.register"), 1);
  await provided;
  peer.socket.terminate();
  const next = await server.peer();
  await next.greet();
  await next.got("rpc.subscribe");
  expect(said(next)).toEqual(["rpc.hello", "rpc.register", "rpc.subscribe"]);
});

it("a batch that waits for a connection is one message there, behind them, without what was cancelled", async () => {
  const provided = client.provide("mine", () => 1);
  peer.answer(await peer.got("rpc.register"), 1);
  await provided;
  peer.socket.terminate();
  const stop = new AbortController();
  const next = await server.peer();
  const batch = client.batch((b) =>
    Promise.allSettled([b.one(), b.two.with({ signal: stop.signal })(), b.notify("three")]),
  );
  const only = failure(client.batch((b) => b.four.with({ signal: stop.signal })()));
  stop.abort();
  const hello = await next.got("rpc.hello");
  next.answer(hello, { session: "s" });
  const calls: Message[] = await vi.waitUntil(() => next.received.find((message) => Array.isArray(message)));
  expect(said(next).slice(0, 2)).toEqual(["rpc.hello", "rpc.register"]);
  expect(calls.map(({ method }) => method as string)).toEqual(["one", "three"]);
  next.say([{ jsonrpc: "2.0", result: 1, id: calls[0].id }]);
  expect(await batch).toMatchObject([{ value: 1 }, { reason: { code: -32800 } }, { status: "fulfilled" }]);
  expect((await only).code).toBe(-32800);
  const last = client.last();
  next.answer(await next.got("last"), 1);
  await last;
  expect(next.received.length).toBe(4);
});

it("what is taken back while it is said again is neither said once more nor refused", async () => {
  const both = Promise.all([client.provide("a", () => 1), client.provide("b", () => 2)]);
  for (const request of await peer.gotAll("rpc.register", 2)) peer.answer(request, 1);
  const [a] = await both;
  peer.socket.terminate();
  const next = await server.peer();
  await next.greet();
  const together = await next.got("rpc.register");
  const taken = a.unregister();
  next.answer(await next.got("rpc.unregister"), true);
  await taken;
  next.refuse(together, { code: -32007, message: "Conflict" });
  const [, single] = await next.gotAll("rpc.register", 2);
  expect(single.params).toEqual({ method: "b" });
  next.answer(single, 1);
  const call = client.f();
  next.answer(await next.got("f"), 1);
  await call;
  expect(said(next)).toEqual(["rpc.hello", "rpc.register", "rpc.unregister", "rpc.register", "f"]);
});

it("what is taken back before it is answered is not told as refused", async () => {
  const provided = client.provide("a", () => 1);
  const taken = provided.unregister();
  peer.refuse(await peer.got("rpc.register"), { code: -32007, message: "Conflict" });
  peer.refuse(await peer.got("rpc.unregister"), { code: -32601, message: "Method not found" });
  await taken;
  expect((await failure(provided)).code).toBe(-32800);
  expect(onRefused).not.toHaveBeenCalled();
});

it("a draining server's refusal is not told, and the next one is asked once", async () => {
  const provided = client.provide("mine", () => 1);
  const draining = { code: -32009, message: "Draining", data: { origin: "local", delivered: "no" } };
  peer.refuse(await peer.got("rpc.register"), draining);
  const next = await server.peer();
  await next.greet();
  next.answer(await next.got("rpc.register"), 1);
  await provided;
  const call = client.f();
  next.answer(await next.got("f"), 1);
  await call;
  expect(said(next)).toEqual(["rpc.hello", "rpc.register", "f"]);
  expect(onRefused).not.toHaveBeenCalled();
});
