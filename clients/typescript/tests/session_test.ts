// What a client says on a connection and in which order, and what becomes of its calls when one is lost.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Client, connect, type ConnectionEvent, type ConnectOptions } from "../src/index.js";
import { deferred, failure } from "./failure.js";
import { greeting, type Message, type Peer, ScriptedServer } from "./scripted_server.js";
import { Server } from "./server.js";

let server: ScriptedServer;
const opened: Client[] = [];
beforeEach(async () => {
  server = await ScriptedServer.start();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((client) => client.close()));
  await server.stop();
});

const quick = { reconnectMin: 1, reconnectMax: 10 };
/** A client, its peer at the server, and when the client has noticed that the connection has ended. */
async function open(options: ConnectOptions = {}, result: object = greeting): Promise<[Client, Peer, Promise<void>]> {
  const lost = deferred();
  const onConnection = (event: ConnectionEvent): void => {
    options.onConnection?.(event);
    if (!event.connected) lost.resolve();
  };
  const connecting = connect(server.url, { ...quick, ...options, onConnection });
  const peer = await server.peer();
  await peer.greet(result);
  const client = await connecting;
  opened.push(client);
  return [client, peer, lost.promise];
}

const methods = (peer: Peer): string[] => peer.received.map((message: Message) => message.method as string);

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

describe("a call", () => {
  it("says how much time it has, without what the server knows", async () => {
    const [client, peer] = await open();
    const calls = [client.a(1), client.b.with({ timeout: 5000 })()];
    const c = failure(client.c({ x: 1 }, { timeout: 1.5, to: "d" }));
    expect(await peer.got("a")).toEqual({ jsonrpc: "2.0", method: "a", params: [1], id: expect.any(Number) });
    const b = await peer.got("b");
    expect(b.params).toBeUndefined();
    expect(b.timeout_ms).toBeGreaterThan(4000);
    expect(b.timeout_ms).toBeLessThanOrEqual(5000);
    expect(await peer.got("c")).toMatchObject({ params: { x: 1 }, to: "d" });
    for (const method of ["a", "b"]) peer.answer(await peer.got(method), method);
    expect(await Promise.all(calls)).toEqual(["a", "b"]);
    expect((await c).code).toBe(-32002);
  });

  it("whose caller no longer waits is cancelled at the server, and a late answer dropped", async () => {
    const [client, peer] = await open();
    const late = failure(client.late.with({ timeout: 5 })());
    const request = await peer.got("late");
    expect(await late).toMatchObject({ code: -32002, delivered: "maybe" });
    expect((await peer.got("$/cancelRequest")).params).toEqual({ id: request.id });
    peer.answer(request, "too late");
    const next = client.next();
    peer.answer(await peer.got("next"), 1);
    expect(await next).toBe(1);
  });

  it("refused undelivered is made once more, and no more than once", async () => {
    const [client, peer] = await open();
    const refusal = {
      code: -32005,
      message: "Limit exceeded",
      data: { origin: "local", delivered: "no", retry_after_ms: 1 },
    };
    const call = failure(client.busy());
    const first = await peer.next();
    const again = peer.next();
    peer.refuse(first, refusal);
    peer.refuse(await again, refusal);
    expect(await call).toMatchObject({ code: -32005, delivered: "no" });
    expect(methods(peer)).toEqual(["rpc.hello", "busy", "busy"]);
    const lucky = client.lucky();
    const second = peer.next();
    peer.refuse(await second, refusal);
    peer.answer(await peer.next(), "yes");
    expect(await lucky).toBe("yes");
  });

  it.each([
    [
      "may have been delivered",
      { code: -32001, message: "Provider lost", data: { origin: "local", delivered: "maybe" } },
    ],
    ["failed in its handler", { code: -32001, message: "Provider lost", data: { delivered: "no" } }],
    ["is of an application", { code: 5, message: "No", data: { origin: "local", delivered: "no" } }],
    ["is forbidden", { code: -32003, message: "Forbidden", data: { origin: "local", delivered: "no" } }],
    [
      "would come too late",
      { code: -32005, message: "Limit", data: { origin: "local", delivered: "no", retry_after_ms: 60_000 } },
    ],
  ])("that %s is not made again", async (_what, error) => {
    const [client, peer] = await open();
    const call = failure(client.once());
    peer.refuse(await peer.got("once"), error);
    expect(await call).toMatchObject({ code: error.code });
    const next = client.next();
    peer.answer(await peer.got("next"), 1);
    await next;
    expect(methods(peer)).toEqual(["rpc.hello", "once", "next"]);
  });

  it("waits while as many are unanswered as the server takes", async () => {
    const [client, peer] = await open({}, { ...greeting, limits: { in_flight: 2 } });
    const calls = [client.a(), client.b(), client.c()];
    await peer.got("b");
    expect(methods(peer)).toEqual(["rpc.hello", "a", "b"]);
    peer.answer(await peer.got("b"), "b");
    peer.answer(await peer.got("c"), "c");
    peer.answer(await peer.got("a"), "a");
    expect(await Promise.all(calls)).toEqual(["a", "b", "c"]);
  });

  it("larger than the server takes is not sent", async () => {
    const [client, peer] = await open({}, { ...greeting, limits: { max_message_size: 1000 } });
    const error = await failure(client.large("é".repeat(500)));
    expect(error).toMatchObject({ code: -32006, delivered: "no", data: { limit: "max_message_size" } });
    const small = client.small("é".repeat(400));
    peer.answer(await peer.got("small"), 1);
    expect(await small).toBe(1);
  });

  it("is answered by what is no response with -32600", async () => {
    const [client, peer] = await open();
    const call = failure(client.odd());
    const request = await peer.got("odd");
    peer.say("no JSON");
    peer.say("5");
    peer.say({ jsonrpc: "2.0", result: 1, id: String(request.id) });
    peer.refuse(request, { code: "x" });
    expect(await call).toMatchObject({ code: -32600 });
  });

  it("of a batch has its own outcome, and the batch is one message", async () => {
    const [client, peer] = await open();
    const batch = client.batch((b) =>
      Promise.allSettled([b.one(1), b.two.with({ timeout: 9000 })({ x: 1 }), b.call("three"), b.notify("four", [4])]),
    );
    const sent: Message[] = await peer.next();
    expect(sent.map(({ method, params }) => [method, params])).toEqual([
      ["one", [1]],
      ["two", { x: 1 }],
      ["three", undefined],
      ["four", [4]],
    ]);
    expect(sent[3].id).toBeUndefined();
    peer.say([
      { jsonrpc: "2.0", error: { code: 2, message: "two" }, id: sent[1].id },
      { jsonrpc: "2.0", result: 3, id: sent[2].id },
      { jsonrpc: "2.0", result: 1, id: sent[0].id },
    ]);
    const [one, two, three, four] = await batch;
    expect(one).toEqual({ status: "fulfilled", value: 1 });
    expect(two).toMatchObject({ status: "rejected", reason: { code: 2 } });
    expect(three).toEqual({ status: "fulfilled", value: 3 });
    expect(four).toEqual({ status: "fulfilled", value: undefined });
    await expect(
      client.batch(() => {
        throw new Error("filled badly");
      }),
    ).rejects.toThrow("filled badly");
    expect(await client.batch(() => 5)).toBe(5);
  });
});

describe("a stream", () => {
  const item = (id: number, seq: number, value: unknown): Message => ({
    jsonrpc: "2.0",
    method: "rpc.item",
    params: { id, seq, value },
  });

  it("gives credit for what its reader has taken, by halves of a window", async () => {
    const [client, peer] = await open();
    const stream = client.numbers.stream(7);
    const first = stream.next();
    const request = await peer.got("numbers");
    expect(request).toEqual({ jsonrpc: "2.0", method: "numbers", params: [7], stream: 64, id: expect.any(Number) });
    for (let seq = 0; seq < 64; seq++) peer.say(item(request.id, seq, seq));
    expect(await first).toEqual({ done: false, value: 0 });
    for (let taken = 1; taken < 31; taken++) await stream.next();
    const credit = peer.next();
    await stream.next();
    expect(await credit).toEqual({ jsonrpc: "2.0", method: "rpc.credit", params: { id: request.id, n: 32 } });
    for (let seq = 64; seq < 96; seq++) peer.say(item(request.id, seq, seq));
    peer.answer(request, null);
    for (let taken = 32; taken < 96; taken++) expect(await stream.next()).toEqual({ done: false, value: taken });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect(methods(peer).filter((method) => method === "rpc.credit").length).toBeLessThanOrEqual(2);
  });

  it.each([
    ["missing items", 1, [0, 2], "items of a stream are missing"],
    ["more than its credit", 65, Array.from({ length: 65 }, (_, at) => at), "a stream has exceeded its credit"],
  ])("with %s ends -32600, and is cancelled", async (_what, _count, seqs, message) => {
    const [client, peer] = await open();
    const stream = client.numbers.stream();
    const first = stream.next();
    const request = await peer.got("numbers");
    // The reader has taken one: so one more may come.
    const credit = seqs.length > 2 ? [...seqs, 65] : seqs;
    for (const seq of credit.slice(0, seqs.length + (seqs.length > 2 ? 1 : 0))) peer.say(item(request.id, seq, seq));
    await first;
    expect((await peer.got("$/cancelRequest")).params).toEqual({ id: request.id });
    const rest = (async () => {
      for await (const value of stream) expect(value).toBeTypeOf("number");
    })();
    expect(await failure(rest)).toMatchObject({ code: -32600, message });
  });

  it("of a server that knows none has the elements of the answer, or the one result", async () => {
    const [client, peer] = await open();
    const read = async (name: string): Promise<unknown[]> => {
      const values: unknown[] = [];
      for await (const value of client.stream(name)) values.push(value);
      return values;
    };
    const gathered = read("gathered");
    peer.answer(await peer.got("gathered"), [1, 2, 3]);
    expect(await gathered).toEqual([1, 2, 3]);
    const single = read("single");
    peer.answer(await peer.got("single"), "one");
    expect(await single).toEqual(["one"]);
    const none = read("none");
    peer.answer(await peer.got("none"), null);
    expect(await none).toEqual([]);
  });

  it("without an item in time ends -32002", async () => {
    const [client, peer] = await open({ timeout: 500 });
    const stream = client.slow.stream();
    const first = stream.next();
    const request = await peer.got("slow");
    expect(request.timeout_ms).toBeUndefined();
    peer.say(item(request.id, 0, "a"));
    expect(await first).toEqual({ done: false, value: "a" });
    expect(await failure(stream.next())).toMatchObject({ code: -32002 });
    expect((await peer.got("$/cancelRequest")).params).toEqual({ id: request.id });
  });

  it("is not asked for before its first item is", async () => {
    const [client, peer] = await open();
    const stream = client.never.stream();
    await stream.return();
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    const call = client.ping();
    peer.answer(await peer.got("ping"), 1);
    await call;
    expect(methods(peer)).toEqual(["rpc.hello", "ping"]);
  });
});

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
    server = await ScriptedServer.start(Number(new URL(url).port));
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

it("a method that is for the server alone is not registered, and called by it", async () => {
  const [client, peer] = await open();
  await client.provide("confirm", (what: string) => `yes, ${what}`, { register: false });
  peer.say({ jsonrpc: "2.0", method: "confirm", params: ["remove it"], hops: 1, timeout_ms: 5000, id: "h1" });
  expect(await peer.next()).toEqual({ jsonrpc: "2.0", result: "yes, remove it", id: "h1" });
  expect(methods(peer)).not.toContain("rpc.register");
});

describe("a request of the server", () => {
  async function provider(): Promise<[Client, Peer]> {
    const [client, peer] = await open({ log: { warn: vi.fn(), error: vi.fn() } });
    for (const [name, handler] of [
      ["add", (a: number, b: number) => a + b],
      ["wait", () => new Promise(() => undefined)],
      [
        "three",
        function* () {
          yield* [1, 2, 3];
          return "end";
        },
      ],
    ] as const) {
      const registering = peer.next();
      const provided = client.provide(name, handler);
      peer.answer(await registering, 1);
      await provided;
    }
    return [client, peer];
  }

  it("is answered with its id, digit for digit", async () => {
    const [, peer] = await provider();
    for (const id of ["9223372036854775807", '"h1"', "1.5", "null", '"\\u0000"']) {
      const answer = new Promise<string>((resolve) =>
        peer.socket.once("message", (data: Buffer) => {
          resolve(data.toString());
        }),
      );
      peer.say(`{"jsonrpc":"2.0","method":"add","params":[1,2],"id":${id}}`);
      expect(await answer).toBe(`{"jsonrpc":"2.0","result":3,"id":${id}}`);
    }
  });

  it("of whatever kind costs itself alone", async () => {
    const [client, peer] = await provider();
    const answered = deferred();
    const call = client.good().then((value: unknown) => {
      answered.resolve();
      return value;
    });
    const good = await peer.got("good");
    const deep = `${"[".repeat(100_000)}1234567890123456789${"]".repeat(100_000)}`;
    for (const text of [
      "",
      "{",
      "null",
      "[]",
      "[null,5,[[]]]",
      "{}",
      deep,
      `{"method":"add","params":${deep},"id":12345678901234567890}`,
      '{"method":5}',
      '{"method":"add","id":"\\ud800"}',
      '{"method":"add","id":{}}',
      '{"method":"add","params":7,"id":7}',
      '{"method":"add","params":{"__proto__":{"x":1}},"id":8}',
      '{"method":"three","stream":0.5,"id":9}',
      '{"method":"three","stream":1,"id":10}',
      '{"method":"rpc.credit","params":{"id":10,"n":-1}}',
      '{"method":"rpc.credit","params":[]}',
      '{"method":"rpc.credit"}',
      '{"method":"rpc.item"}',
      '{"method":"rpc.item","params":{"id":1,"seq":0,"value":0}}',
      '{"method":"rpc.lagged"}',
      '{"method":"rpc.cancel","params":[[{}],null]}',
      '{"method":"$/cancelRequest"}',
      '{"method":"toString","id":11}',
      '{"method":"__proto__","params":[1]}',
      '{"id":1}',
      '{"error":null,"id":null}',
      `{"result":1,"id":"${String(good.id)}"}`,
    ]) {
      peer.say(text);
    }
    peer.socket.send(Buffer.from([0, 255])); // binary is nothing that was asked for
    peer.answer(good, "still there");
    await answered.promise;
    expect(await call).toBe("still there");
    await vi.waitFor(() => {
      expect(peer.received.find((message: Message) => message.id === 11)?.error.code).toBe(-32601);
    });
  });

  it("of an unknown method is -32601, and a batch is answered by an array", async () => {
    const [, peer] = await provider();
    peer.say([
      { jsonrpc: "2.0", method: "add", params: [1, 2], id: 1 },
      { jsonrpc: "2.0", method: "add", params: [1, 2] },
      { jsonrpc: "2.0", method: "nope", id: 2 },
      { jsonrpc: "2.0", method: "three", stream: 1, id: 3 },
    ]);
    const answers: Message[] = await peer.next();
    expect(answers.sort((a, b) => a.id - b.id)).toEqual([
      { jsonrpc: "2.0", result: 3, id: 1 },
      { jsonrpc: "2.0", error: { code: -32601, message: "Method not found" }, id: 2 },
      { jsonrpc: "2.0", result: [1, 2, 3], id: 3 },
    ]);
  });

  it("is cancelled in either way, and counted", async () => {
    const [, peer] = await provider();
    for (const method of ["rpc.cancel", "$/cancelRequest"]) {
      peer.say({ jsonrpc: "2.0", method: "wait", id: "w" });
      const cancelled = peer.next();
      peer.say({ jsonrpc: "2.0", method, params: { id: "w" } });
      expect(await cancelled).toMatchObject({ error: { code: -32800, message: "Cancelled" }, id: "w" });
    }
    peer.say({ jsonrpc: "2.0", method: "wait", id: 1 });
    const answers = deferred<Message[]>();
    const got: Message[] = [];
    peer.socket.on("message", (data: Buffer) => {
      got.push(JSON.parse(data.toString()));
      if (got.length === 2) answers.resolve(got);
    });
    peer.say({ jsonrpc: "2.0", method: "rpc.cancel", params: [1, 2, "1"], id: "c" });
    expect(await answers.promise).toEqual([
      expect.objectContaining({ error: expect.objectContaining({ code: -32800 }), id: 1 }),
      { jsonrpc: "2.0", result: 1, id: "c" },
    ]);
  });

  it("whose time is up is answered -32002", async () => {
    const [, peer] = await provider();
    peer.say({ jsonrpc: "2.0", method: "wait", timeout_ms: 5, id: 1 });
    expect(await peer.next()).toMatchObject({ error: { code: -32002, data: { delivered: "maybe" } }, id: 1 });
  });

  it("for a stream is served as far as its credit goes", async () => {
    const [, peer] = await provider();
    const got: Message[] = [];
    peer.socket.on("message", (data: Buffer) => got.push(JSON.parse(data.toString())));
    peer.say({ jsonrpc: "2.0", method: "three", stream: 2, id: "s" });
    peer.say({ jsonrpc: "2.0", method: "rpc.ping", id: "p" });
    await vi.waitFor(() => {
      expect(got.length).toBe(3);
    });
    peer.say({ jsonrpc: "2.0", method: "rpc.credit", params: { id: "s", n: 5 } });
    await vi.waitFor(() => {
      expect(got.length).toBe(5);
    });
    const item = (seq: number): Message => ({
      jsonrpc: "2.0",
      method: "rpc.item",
      params: { id: "s", seq, value: seq + 1 },
    });
    expect(got.filter(({ id }) => id !== "p")).toEqual([
      item(0),
      item(1),
      item(2),
      { jsonrpc: "2.0", result: "end", id: "s" },
    ]);
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
