// What a client says on a connection and in which order, and when it is closed.
import { describe, expect, it, vi } from "vitest";
import { connect } from "../src/index.js";
import { failure } from "./failure.js";
import { greeting } from "./scripted_server.js";
import { open, opened, serveAt, serveEachTest, server } from "./scripted_session.js";

serveEachTest();

describe("a connection", () => {
  it("begins with hello, with a name and a token", async () => {
    const connecting = connect(server.url, { clientId: "page", token: "a token" });
    const peer = await server.peer();
    expect(await peer.greet()).toEqual({
      jsonrpc: "2.0",
      method: "rpc.hello",
      params: { name: "page", token: "a token" },
      id: expect.any(Number),
    });
    expect(peer.offered).toBeUndefined();
    opened.push(await connecting);
  });

  it("shows the token as a subprotocol where that is asked for, and not again in hello", async () => {
    const connecting = connect(server.url, { token: "tökén", tokenBy: "subprotocol" });
    const peer = await server.peer();
    const hello = await peer.greet();
    expect(hello.params).toEqual({});
    expect(peer.offered?.replace(" ", "")).toBe(`jsonrpc,bearer.${Buffer.from("tökén").toString("base64url")}`);
    expect(peer.protocol).toBe("jsonrpc");
    opened.push(await connecting);
  });

  it("to a server without hello is as good as any other", async () => {
    const connecting = connect(server.url);
    const peer = await server.peer();
    peer.refuse(await peer.got("rpc.hello"), { code: -32601, message: "Method not found" });
    const client = await connecting;
    opened.push(client);
    const call = client.add(1, 2);
    peer.answer(await peer.got("add"), 3);
    expect(await call).toBe(3);
  });

  it("that the server refuses is the error of connect, and is not tried again", async () => {
    const connecting = failure(connect(server.url, { token: "wrong" }));
    const peer = await server.peer();
    peer.refuse(await peer.got("rpc.hello"), { code: -32004, message: "Unauthenticated", data: { reason: "who?" } });
    expect(await connecting).toMatchObject({ code: -32004, message: "Unauthenticated" });
    await peer.closed;
    expect(server.connections).toBe(1);
  });

  it("is lost when the server closes it during hello", async () => {
    const connecting = failure(connect(server.url));
    (await server.peer()).socket.close(1013, "try later");
    const error = await connecting;
    expect(error.code).toBe(-32001);
    expect(error.message).toContain("try later");
  });

  it("answers pings of the server, and asks for a sign of life itself", async () => {
    const [, peer] = await open({}, { ...greeting, keepalive: 1000 });
    peer.say({ jsonrpc: "2.0", method: "rpc.ping", id: "rpc.ping" });
    expect(await peer.next()).toEqual({ jsonrpc: "2.0", result: "pong", id: "rpc.ping" });
    peer.answer(await peer.got("rpc.ping"), "pong");
    // Then it says nothing any more, and the client leaves.
    expect(await peer.closed).toBe(1000);
  });
});

describe("a client that is closed", () => {
  it("waits no longer than a second for its peer, and hears nothing any more", async () => {
    const [client, peer] = await open();
    const heard = vi.fn();
    const subscribed = client.subscribe("news", heard);
    peer.answer(await peer.got("rpc.subscribe"), true);
    await subscribed;
    peer.socket.pause();
    const begun = performance.now();
    const closing = client.close();
    peer.say({ jsonrpc: "2.0", method: "news", params: [1] });
    await closing;
    expect(performance.now() - begun).toBeLessThan(5000);
    expect(heard).not.toHaveBeenCalled();
  });

  it("refuses what is said to it", async () => {
    const [client] = await open();
    await client.close();
    expect((await failure(client.subscribe("news", () => 0))).code).toBe(-32001);
    expect((await failure(client.provide("x", () => 0))).code).toBe(-32001);
    expect((await failure(client.batch((b) => [b.x()]))).code).toBe(-32001);
    await client.close();
  });

  it("while it connects makes no connection", async () => {
    const [client, , lost] = await open();
    const { url } = server;
    await server.stop();
    await lost;
    const waiting = failure(client.later());
    await client.close();
    expect(await waiting).toMatchObject({ code: -32001 });
    await serveAt(Number(new URL(url).port));
    await new Promise((resolve) => setImmediate(resolve));
    expect(server.connections).toBe(0);
  });
});

describe("a subscription that is ended before it is accepted", () => {
  it("is refused as cancelled, and the server is told", async () => {
    const [client, peer] = await open();
    const subscription = client.subscribe("news", () => 0);
    const ended = subscription.unsubscribe();
    peer.answer(await peer.got("rpc.subscribe"), true);
    peer.answer(await peer.got("rpc.unsubscribe"), true);
    await ended;
    expect((await failure(subscription)).code).toBe(-32800);
  });
});

it("functions for news that fail cost nothing", async () => {
  const log = { warn: vi.fn(), error: vi.fn() };
  const fail = (): never => {
    throw new Error("not our day");
  };
  const [client, peer] = await open({ log, onConnection: fail, onLagged: fail, onRefused: fail });
  peer.say({ jsonrpc: "2.0", method: "rpc.lagged", params: { topic: "x", dropped: 3 } });
  const provided = failure(client.provide("x", () => 0));
  peer.refuse(await peer.got("rpc.register"), { code: -32007, message: "Conflict" });
  expect((await provided).code).toBe(-32007);
  expect(log.error).toHaveBeenCalledTimes(3);
});

it("events that were lost, and refusals, go to the log where no function asks for them", async () => {
  const log = { warn: vi.fn(), error: vi.fn() };
  const [client, peer] = await open({ log });
  peer.say({ jsonrpc: "2.0", method: "rpc.lagged", params: { topic: "x", dropped: 3 } });
  client.provide("x", () => 0);
  peer.refuse(await peer.got("rpc.register"), { code: -32007, message: "Conflict" });
  await vi.waitFor(() => {
    expect(log.warn.mock.calls.map(([message]) => String(message))).toEqual([
      "wirecall: 3 events of x were lost: this client reads too slowly",
      "wirecall: the server refuses x",
    ]);
  });
});
