// How a client answers the requests of its server.
import { describe, expect, it, vi } from "vitest";
import { type Client } from "../src/index.js";
import { deferred } from "./failure.js";
import { type Message, type Peer } from "./scripted_server.js";
import { methods, open, serveEachTest } from "./scripted_session.js";

serveEachTest();

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
