// What a client's calls and streams say on a connection, and what becomes of their answers.
import { describe, expect, it } from "vitest";
import { failure } from "./failure.js";
import { greeting, type Message } from "./scripted_server.js";
import { methods, open, serveEachTest } from "./scripted_session.js";

serveEachTest();

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
