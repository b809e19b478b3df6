// Methods that clients provide, and events between them.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type CallContext, type Client, connect, type ConnectOptions, RpcError } from "../src/index.js";
import { deferred, failure } from "./failure.js";
import { Server } from "./server.js";

let server: Server;
beforeAll(async () => {
  server = await Server.start(["--disclose-callers", "true"]);
});
afterAll(async () => {
  await server.stop();
});

let worker: Client;
let caller: Client;
const opened: Client[] = [];
async function open(options?: ConnectOptions): Promise<Client> {
  const client = await connect(server.ws, options);
  opened.push(client);
  return client;
}
beforeEach(async () => {
  worker = await open({ clientId: "worker", log: { warn: vi.fn(), error: vi.fn() } });
  caller = await open({ clientId: "caller" });
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((client) => client.close()));
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

describe("what a client provides", () => {
  it("is called by others, by position and by name", async () => {
    await worker.provide("page.title", () => "Title");
    await worker.provide("gpu.add", (a: number, b: number) => a + b, { params: ["a", "b"] });
    await worker.provide("whole", (...given: unknown[]) => given);
    expect(await caller.page.title()).toBe("Title");
    expect(await caller["page.title"]()).toBe("Title");
    expect(await caller["gpu.add"]({ a: 1, b: 2 }, { timeout: 5000 })).toBe(3);
    expect(await caller.gpu.add(1, 2)).toBe(3);
    expect(await caller.whole(1, 2)).toEqual([1, 2]);
    expect(await caller.whole({ a: 1 })).toEqual([{ a: 1 }]);
    expect(await caller.whole()).toEqual([]);
    expect(await failure(caller.gpu.add({ a: 1, c: 2 }))).toMatchObject({
      code: -32602,
      data: { loc: ["c"], expected: "nothing", got: "2" },
    });
    expect((await failure(caller.gpu.add(1, 2, 3))).data).toMatchObject({ loc: [2], got: "3" });
  });

  it("answers with null for nothing, when a promise is fulfilled, and in any order", async () => {
    const gate = deferred();
    await worker.provide("nothing", () => undefined);
    await worker.provide("slow", () => gate.promise.then(() => "slow"));
    const slow = caller.slow();
    expect(await caller.nothing()).toBeNull();
    gate.resolve();
    expect(await slow).toBe("slow");
  });

  it("answers with the error that it throws, and tells nobody but the log of any other failure", async () => {
    const log = { warn: vi.fn(), error: vi.fn() };
    const other = await open({ log });
    await other.provide("ours", () => {
      throw new RpcError(1001, "No such account", { account: 7 });
    });
    await other.provide("theirs", () => Promise.reject(new Error("a secret")));
    await other.provide("nan", () => NaN);
    expect(await failure(caller.ours())).toMatchObject({
      code: 1001,
      message: "No such account",
      data: { account: 7 },
    });
    const theirs = await failure(caller.theirs());
    expect(theirs).toMatchObject({ code: -32603, message: "Internal error" });
    expect(JSON.stringify(theirs)).not.toContain("secret");
    expect((await failure(caller.nan())).code).toBe(-32603);
    expect(log.error.mock.calls.map(([message]) => String(message))).toEqual([
      "wirecall: a handler of theirs has failed",
      "wirecall: a handler of nan has failed",
    ]);
  });

  it("cannot claim not to have run", async () => {
    await worker.provide("claims", () => {
      throw new RpcError(-32001, "Provider lost", { origin: "local", delivered: "no" });
    });
    expect(await failure(caller.claims())).toMatchObject({ code: -32001, delivered: "maybe" });
  });

  it("knows its call: the caller's name, the time that is left, and when it is cancelled", async () => {
    const begun = deferred();
    const aborted = deferred<unknown>();
    let seen: Pick<CallContext, "method" | "caller" | "remaining"> | undefined;
    await worker.provide("wait", function () {
      seen = { method: this.method, caller: this.caller, remaining: this.remaining };
      this.signal.addEventListener("abort", () => {
        aborted.resolve(this.signal.reason);
      });
      begun.resolve();
      return new Promise(() => undefined);
    });
    const stop = new AbortController();
    const call = failure(caller.wait.with({ signal: stop.signal, timeout: 9000 })());
    await begun.promise;
    stop.abort();
    expect(await call).toMatchObject({ code: -32800, delivered: "maybe" });
    expect(await aborted.promise).toMatchObject({ code: -32800 });
    expect(seen).toMatchObject({ method: "wait", caller: "caller" });
    expect(seen?.remaining).toBeGreaterThan(0);
    expect(seen?.remaining).toBeLessThanOrEqual(9000);
  });

  it("is told when its caller's time is up, and when its caller leaves", async () => {
    const begun = [deferred(), deferred()];
    const aborted = [deferred<unknown>(), deferred<unknown>()];
    await worker.provide("wait", function (at: number) {
      this.signal.addEventListener("abort", () => {
        aborted[at].resolve(this.signal.reason);
      });
      begun[at].resolve();
      return new Promise(() => undefined);
    });
    expect((await failure(caller.wait.with({ timeout: 500 })(0))).code).toBe(-32002);
    expect(await aborted[0].promise).toBeInstanceOf(RpcError);
    const leaving = await open();
    const left = failure(leaving.wait(1));
    await begun[1].promise;
    await leaving.close();
    expect((await left).code).toBe(-32001);
    expect(await aborted[1].promise).toMatchObject({ code: -32800 });
  });

  it("yields the items of a stream as its reader takes them", async () => {
    let made = 0;
    await worker.provide("numbers", async function* (n: number) {
      for (let i = 0; i < n; i++) {
        made++;
        yield i;
        await Promise.resolve();
      }
      return "end";
    });
    expect(await all(caller.numbers.stream(1000))).toEqual(Array.from({ length: 1000 }, (_, i) => i));
    expect(await caller.numbers(3)).toEqual([0, 1, 2]);
    made = 0;
    const stream = caller.numbers.stream(1_000_000);
    expect(await stream.next()).toEqual({ done: false, value: 0 });
    await caller.sum(1);
    await stream.return();
    // 64 at the caller, and as many between the broker and the provider.
    expect(made).toBeLessThan(300);
  });

  it("ends a stream that its reader leaves, and runs its finally", async () => {
    const cleaned = deferred();
    await worker.provide("ticks", async function* () {
      try {
        for (let i = 0; ; i++) {
          yield i;
          await Promise.resolve();
        }
      } finally {
        cleaned.resolve();
      }
    });
    for await (const tick of caller.ticks.stream()) if (tick === 100) break;
    await cleaned.promise;
  });

  it("a plain generator is a stream as well, and an error ends one early", async () => {
    await worker.provide("two", function* () {
      yield 1;
      yield 2;
      throw new RpcError(5, "no third");
    });
    const stream = caller.two.stream();
    expect(await stream.next()).toEqual({ done: false, value: 1 });
    expect(await stream.next()).toEqual({ done: false, value: 2 });
    expect(await failure(stream.next())).toMatchObject({ code: 5, message: "no third" });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect((await failure(caller.two())).code).toBe(5);
  });

  it("is called no more when it has been unregistered, and the name may be provided anew", async () => {
    const first = await worker.provide("again", () => 1);
    expect(first.name).toBe("again");
    expect((await failure(Promise.resolve().then(() => worker.provide("again", () => 2)))).code).toBe(-32007);
    await first.unregister();
    expect((await failure(caller.again())).code).toBe(-32601);
    await worker.provide("again", () => 3);
    expect(await caller.again()).toBe(3);
    await first.unregister();
    expect(await caller.again()).toBe(3);
  });

  it("stands for all names behind a prefix, the longest one first", async () => {
    await worker.provide("gpu.>", function () {
      return `any:${this.method}`;
    });
    await worker.provide("gpu.fast.>", function () {
      return `fast:${this.method}`;
    });
    await worker.provide("gpu.one", () => "one");
    expect(await caller.gpu.one()).toBe("one");
    expect(await caller.gpu.two()).toBe("any:gpu.two");
    expect(await caller.gpu.fast.three()).toBe("fast:gpu.fast.three");
  });

  it("is refused where the name is taken, and the client goes on", async () => {
    const onRefused = vi.fn();
    const other = await open({ onRefused });
    await worker.provide("mine", () => 1, { policy: "exclusive" });
    const error = await failure(other.provide("mine", () => 2));
    expect(error.code).toBe(-32007);
    expect(onRefused).toHaveBeenCalledWith("mine", error);
    expect((await failure(other.provide("sum", () => 2))).code).toBe(-32007);
    expect((await failure(other.provide("no good name", () => 2))).code).toBe(-32602);
    await other.provide("other", () => 3);
    expect(await caller.other()).toBe(3);
  });

  it("describes itself", async () => {
    await worker.provide("described", (a: number) => a, {
      summary: "What it does",
      params: [{ name: "a", required: true, schema: { type: "integer" } }],
      result: { type: "integer" },
    });
    const document = await caller.call<{ methods: { name: string }[] }>("rpc.discover");
    expect(document.methods.find(({ name }) => name === "described")).toMatchObject({
      summary: "What it does",
      params: [{ name: "a", required: true, schema: { type: "integer" } }],
      result: { schema: { type: "integer" } },
    });
    expect((await failure(caller.described())).data).toMatchObject({ loc: ["a"], got: "nothing" });
  });

  it("makes calls that are part of the one that it serves", async () => {
    await worker.provide("outer", async function (n: number) {
      return caller.call<number>("inner", [n], { within: this });
    });
    await worker.provide("inner", function (n: number) {
      return n === 0 ? this.hops : caller.outer.with({ within: this })(n - 1);
    });
    expect(await caller.outer(0)).toBe(1);
    expect(await caller.outer(3)).toBe(7);
    const round = await failure(caller.outer(1_000_000));
    expect(round).toMatchObject({ code: -32005, data: { limit: "hops" } });
  });

  it("is served by a client of that name alone, where one is named", async () => {
    const [a, b] = [await open({ clientId: "a" }), await open({ clientId: "b" })];
    await a.provide("who", () => "a");
    await b.provide("who", () => "b");
    for (const name of ["a", "b", "a"]) expect(await caller.who.with({ to: name })()).toBe(name);
    expect(await failure(caller.who.with({ to: "c" })())).toMatchObject({ code: -32001, delivered: "no" });
    const outcomes = await caller.callAll<string>("who");
    expect(outcomes).toEqual([
      { client: "a", result: "a" },
      { client: "b", result: "b" },
    ]);
  });

  it("all providers of a method are called, and each has its outcome", async () => {
    const [a, b] = [await open({ clientId: "a" }), await open()];
    await a.provide("half", (n: number) => n / 2);
    await b.provide("half", () => {
      throw new RpcError(9, "odd");
    });
    const [first, second] = await caller.callAll<number>("half", [8], { timeout: 5000 });
    expect(first).toEqual({ client: "a", result: 4 });
    expect(second.client).toBeUndefined();
    expect(second.error).toBeInstanceOf(RpcError);
    expect(second.error).toMatchObject({ code: 9, message: "odd" });
  });

  it("takes notifications, of which nobody hears", async () => {
    const heard = deferred<unknown[]>();
    await worker.provide("log", (...given: unknown[]) => {
      heard.resolve(given);
      throw new Error("not told");
    });
    await caller.notify("log", ["x", 1]);
    expect(await heard.promise).toEqual(["x", 1]);
  });
});

describe("events", () => {
  it("come to those who have subscribed, with their topic and value", async () => {
    const heard: unknown[] = [];
    const third = deferred();
    const subscription = worker.subscribe("news.>", (topic, value) => {
      heard.push([topic, value]);
      if (heard.length === 3) third.resolve();
    });
    expect(subscription.topic).toBe("news.>");
    await subscription;
    expect(await caller.publish("news.sport", 7)).toBe(1);
    expect(await caller.publish("news.sport.today", { a: [1] })).toBe(1);
    await caller.notify("news.none");
    expect(await caller.publish("olds", 7)).toBe(0);
    await third.promise;
    expect(heard).toEqual([
      ["news.sport", 7],
      ["news.sport.today", { a: [1] }],
      ["news.none", undefined],
    ]);
    await subscription.unsubscribe();
    expect(await caller.publish("news.sport", 8)).toBe(0);
    await worker.sum(1);
    expect(heard.length).toBe(3);
  });

  it("a value that is no array or object travels in one, and an array of one object stays", async () => {
    const heard: unknown[] = [];
    await worker.subscribe("value", (_topic, value) => void heard.push(value));
    for (const value of ["text", null, false, 1.5, [1, 2], [], [{ a: 1 }], [[1]]]) await caller.publish("value", value);
    await caller.publish("value", new Date(0));
    await caller.publish("value", new Uint8Array([1]));
    await worker.sum(1);
    expect(heard).toEqual([
      ...["text", null, false, 1.5, [1, 2], [], [{ a: 1 }], [[1]]],
      "1970-01-01T00:00:00.000Z",
      { $bytes: "AQ==" },
    ]);
  });

  it("each handler of a client has an event once, in the order of subscribing, and the client one copy", async () => {
    const heard: string[] = [];
    await worker.subscribe("a.b", () => void heard.push("first"));
    await worker.subscribe("a.*", () => {
      heard.push("second");
      throw new Error("does not cost the others");
    });
    const third = await worker.subscribe("a.b", () => void heard.push("third"));
    await worker.subscribe("*", () => void heard.push("never"));
    expect(await caller.publish("a.b", 1)).toBe(1);
    await worker.sum(1);
    expect(heard).toEqual(["first", "second", "third"]);
    await third.unsubscribe();
    expect(await caller.publish("a.b", 2)).toBe(1);
    await worker.sum(1);
    expect(heard).toEqual(["first", "second", "third", "first", "second"]);
  });

  it("a publisher hears its own with echo alone, and one of a group hears each", async () => {
    const heard = { own: 0, group: 0 };
    await caller.subscribe("mine", () => heard.own++);
    expect(await caller.publish("mine", 1)).toBe(0);
    await caller.subscribe("ours", () => heard.own++, { echo: true });
    expect(await caller.publish("ours", 1)).toBe(1);
    const [a, b] = [await open(), await open()];
    for (const member of [a, b]) await member.subscribe("jobs", () => heard.group++, { group: "g" });
    for (let i = 0; i < 10; i++) expect(await caller.publish("jobs", i)).toBe(1);
    await Promise.all([a.sum(1), b.sum(1), caller.sum(1)]);
    expect(heard).toEqual({ own: 1, group: 10 });
    expect(() => a.subscribe("jobs", () => 0, { group: "h" })).toThrow("the same group and echo");
  });

  it("a retained one comes to later subscribers that ask for the last, until it is deleted", async () => {
    const heard: unknown[] = [];
    await caller.publish("state.a", 1, { retain: true });
    await caller.publish("state.a", 2, { retain: true });
    await worker.subscribe("state.*", (_topic, value) => void heard.push(value));
    await worker.sum(1);
    expect(heard).toEqual([]);
    const again = deferred();
    await worker.subscribe(
      "state.*",
      () => {
        again.resolve();
      },
      { last: true },
    );
    await again.promise;
    expect(heard).toEqual([2]);
    await caller.publish("state.a", undefined, { retain: true });
    const other = await open();
    await other.subscribe("state.*", () => void heard.push("deleted"), { last: true });
    await Promise.all([other.sum(1), worker.sum(1)]);
    expect(heard).toEqual([2]);
  });

  it("a topic that cannot be one is refused", async () => {
    expect((await failure(worker.subscribe("a..b", () => 0))).code).toBe(-32602);
    expect((await failure(caller.publish("rpc.mine", 1))).code).toBeLessThan(0);
  });
});

describe("by HTTP", () => {
  it("the items of a stream come one by one: all together would not end", async () => {
    const client = await connect(server.http);
    let count = 0;
    for await (const item of client.count.stream(1_000_000_000)) {
      expect(item).toBe(count);
      if (++count === 2000) break;
    }
    expect(count).toBe(2000);
    expect(await client.sum(1, 2)).toBe(3);
  });

  it("provide and subscribe throw, and the rest works", async () => {
    const client = await connect(server.http);
    expect(() => client.provide("x", () => 0)).toThrow("provide needs a connection");
    expect(() => client.subscribe("x", () => 0)).toThrow(RpcError);
    await worker.provide("twice", (x: number) => 2 * x);
    const heard = deferred<unknown>();
    await worker.subscribe("told", (_topic, value) => {
      heard.resolve(value);
    });
    expect(await client.twice(4)).toBe(8);
    expect(await client.publish("told", "x")).toBe(1);
    expect(await heard.promise).toBe("x");
    expect(await client.callAll("twice", [1])).toEqual([{ client: "worker", result: 2 }]);
    expect(await all(client.count.stream(5))).toEqual([0, 1, 2, 3, 4]);
    expect(await client.batch((b) => [b.twice(1), b.sum(1, 2)])).toEqual([2, 3]);
  });
});
