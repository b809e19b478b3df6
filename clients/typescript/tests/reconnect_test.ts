// What becomes of a client's calls, methods and subscriptions when a connection is lost or its server drains.
import { describe, expect, it, vi } from "vitest";
import { connect, type ConnectionEvent } from "../src/index.js";
import { deferred, failure } from "./failure.js";
import { greeting, ScriptedServer } from "./scripted_server.js";
import { methods, open, opened, quick, serveEachTest, server } from "./scripted_session.js";
import { Server } from "./server.js";

serveEachTest();

describe("a lost connection", () => {
  it("ends the calls that have left, and the others are made on the next one, behind hello, register and subscribe", async () => {
    const events: ConnectionEvent[] = [];
    const [client, peer] = await open({ clientId: "worker", onConnection: (event) => events.push(event) });
    const provided = client.provide("mine", () => 1);
    peer.answer(await peer.got("rpc.register"), 1);
    await provided;
    const subscribed = client.subscribe("news.>", () => 0);
    peer.answer(await peer.got("rpc.subscribe"), true);
    await subscribed;

    const left = failure(client.left());
    await peer.got("left");
    peer.socket.terminate();
    expect(await left).toMatchObject({ code: -32001, delivered: "maybe" });
    const waiting = client.waiting(1);

    const next = await server.peer();
    const hello = await next.got("rpc.hello");
    expect(hello.params).toEqual({ name: "worker", resume: "secret" });
    next.answer(hello, { ...greeting, session: "another" });
    next.answer(await next.got("waiting"), "made");
    expect(await waiting).toBe("made");
    expect(methods(next)).toEqual(["rpc.hello", "rpc.register", "rpc.subscribe", "waiting"]);
    expect(next.received[1].params).toEqual({ method: "mine" });
    expect(next.received[2].params).toEqual({ topic: "news.>" });
    expect(events.map(({ connected }) => connected)).toEqual([true, false, true]);

    next.socket.terminate();
    const third = await server.peer();
    expect((await third.greet()).params.resume).toBe("another");
  });

  it("to a broker that has forgotten the session is hello without it, and no call is lost", async () => {
    const [client, peer, lost] = await open({ clientId: "worker" });
    peer.socket.terminate();
    await lost;
    const waiting = client.waiting();
    const next = await server.peer();
    const resuming = await next.got("rpc.hello");
    const again = next.next();
    next.refuse(resuming, { code: -32004, message: "Unauthenticated" });
    const hello = await again;
    expect(hello).toMatchObject({ method: "rpc.hello", params: { name: "worker" } });
    expect(hello.params.resume).toBeUndefined();
    next.answer(hello, greeting);
    next.answer(await next.got("waiting"), 1);
    expect(await waiting).toBe(1);
  });

  it("registers several methods at once, and one by one where that is refused", async () => {
    const onRefused = vi.fn();
    const [client, peer] = await open({ onRefused });
    const both = Promise.all([client.provide("a", () => 1), client.provide("b", () => 2)]);
    for (const request of await peer.gotAll("rpc.register", 2)) peer.answer(request, 1);
    await both;
    peer.socket.terminate();
    const next = await server.peer();
    await next.greet();
    const register = await next.got("rpc.register");
    expect(register.params).toEqual({ methods: [{ method: "a" }, { method: "b" }] });
    next.refuse(register, { code: -32007, message: "Conflict" });
    const [, ...single] = await next.gotAll("rpc.register", 3);
    expect(single.map(({ params }) => params)).toEqual([{ method: "a" }, { method: "b" }]);
    next.refuse(single[0], { code: -32007, message: "Conflict" });
    next.answer(single[1], 1);
    await vi.waitFor(() => {
      expect(onRefused).toHaveBeenCalledTimes(1);
    });
    expect(onRefused).toHaveBeenCalledWith("a", expect.objectContaining({ code: -32007 }));
  });

  it("is left alone while nothing is to be said or heard", async () => {
    const [client, peer, lost] = await open();
    peer.socket.terminate();
    await lost;
    await new Promise((resolve) => setImmediate(resolve));
    expect(server.connections).toBe(1);
    const call = client.later();
    const next = await server.peer();
    await next.greet();
    next.answer(await next.got("later"), 1);
    expect(await call).toBe(1);
  });

  it("to a server that is gone is tried until the call's time is up, and the call says why", async () => {
    const [client, , lost] = await open();
    const { url } = server;
    await server.stop();
    await lost;
    const error = await failure(client.call("x", [], { timeout: 1000 }));
    expect(error).toMatchObject({ code: -32001, delivered: "no" });
    expect(error.message).toContain(`cannot connect to ${url}`);
  });

  it("goes to the next URL where the first does not answer", async () => {
    const gone = await ScriptedServer.start();
    const { url } = gone;
    await gone.stop();
    const connecting = connect([url, server.url], quick);
    const peer = await server.peer();
    await peer.greet();
    opened.push(await connecting);
  });

  it("to a draining server is given up when its calls are answered", async () => {
    const [client, peer] = await open();
    const before = client.before();
    const request = await peer.got("before");
    peer.say({ jsonrpc: "2.0", method: "rpc.draining" });
    peer.say({ jsonrpc: "2.0", method: "rpc.ping", id: 1 });
    await peer.next();
    const after = client.after();
    peer.answer(request, 1);
    expect(await before).toBe(1);
    expect(await peer.closed).toBe(1000);
    const next = await server.peer();
    await next.greet();
    next.answer(await next.got("after"), 2);
    expect(await after).toBe(2);
    expect(methods(peer)).not.toContain("after");
  });

  it("a call that a draining server has refused is made at the next one", async () => {
    const [client, peer] = await open();
    const call = client.late();
    peer.refuse(await peer.got("late"), {
      code: -32009,
      message: "Draining",
      data: { origin: "local", delivered: "no" },
    });
    const next = await server.peer();
    await next.greet();
    next.answer(await next.got("late"), "done");
    expect(await call).toBe("done");
  });

  it("to a draining server that refuses to register has the next one asked", async () => {
    const [client, peer] = await open();
    const provided = client.provide("mine", () => 1);
    peer.refuse(await peer.got("rpc.register"), { code: -32009, message: "Draining", data: { delivered: "no" } });
    const next = await server.peer();
    await next.greet();
    next.answer(await next.got("rpc.register"), 1);
    expect((await provided).name).toBe("mine");
  });

  it("aborts the calls that the client serves", async () => {
    const [client, peer] = await open();
    const begun = deferred();
    const aborted = deferred<unknown>();
    const provided = client.provide("wait", function () {
      this.signal.addEventListener("abort", () => {
        aborted.resolve(this.signal.reason);
      });
      begun.resolve();
      return new Promise(() => undefined);
    });
    peer.answer(await peer.got("rpc.register"), 1);
    await provided;
    peer.say({ jsonrpc: "2.0", method: "wait", id: 1 });
    await begun.promise;
    peer.socket.terminate();
    expect(await aborted.promise).toMatchObject({ code: -32001 });
  });
});

it("through a restart of the real server its calls, methods and subscriptions go on", async () => {
  let real = await Server.start();
  const { port } = real;
  const worker = await connect(real.ws, { clientId: "worker", ...quick });
  const lost = deferred();
  const onConnection = (event: ConnectionEvent): void => {
    if (!event.connected) lost.resolve();
  };
  const caller = await connect(real.ws, { ...quick, onConnection });
  opened.push(worker, caller);
  const heard: unknown[] = [];
  await worker.provide("twice", (x: number) => 2 * x);
  await worker.subscribe("news", (_topic, value) => void heard.push(value));
  expect(await caller.twice(2)).toBe(4);
  await Promise.all([real.stop(), lost.promise]);
  const waiting = caller.sum(1, 2);
  real = await Server.start([], port);
  try {
    expect(await waiting).toBe(3);
    await vi.waitFor(async () => {
      expect(await caller.twice(3)).toBe(6);
    }, 10_000);
    await vi.waitFor(async () => {
      expect(await caller.publish("news", "again")).toBe(1);
    }, 10_000);
    await worker.sum(1);
    expect(heard).toContain("again");
  } finally {
    await real.stop();
  }
});

it("a server that drains answers what it has, and the client waits for the next one", async () => {
  let real = await Server.start();
  const { port } = real;
  const client = await connect(real.ws, quick);
  opened.push(client);
  const slow = client.sleep(300);
  await client.sum(1);
  const stopped = real.stop("SIGTERM");
  expect(await slow).toBeNull();
  await stopped;
  const waiting = client.sum(1, 2);
  real = await Server.start([], port);
  try {
    expect(await waiting).toBe(3);
  } finally {
    await real.stop();
  }
});
