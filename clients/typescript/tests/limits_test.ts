// What a client sends is no larger than its server takes: one message that is would end the connection.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Client, connect, RpcError } from "../src/index.js";
import { failure } from "./failure.js";
import { greeting, type Peer, ScriptedServer } from "./scripted_server.js";
import { Server } from "./server.js";

const limit = 1000;
let server: ScriptedServer;
let client: Client;
let peer: Peer;
let raw: string[];
beforeEach(async () => {
  server = await ScriptedServer.start();
  const connecting = connect(server.url, { log: { warn: vi.fn(), error: vi.fn() } });
  peer = await server.peer();
  await peer.greet({ ...greeting, limits: { max_message_size: limit } });
  client = await connecting;
  raw = [];
  peer.socket.on("message", (data: Buffer) => raw.push(data.toString()));
});
afterEach(async () => {
  await client.close();
  await server.stop();
});

async function provide(name: string, handler: (...given: number[]) => unknown): Promise<void> {
  const provided = client.provide(name, handler);
  peer.answer(await peer.got("rpc.register"), 1);
  await provided;
  raw.length = 0;
}

const tooLarge = { code: -32006, data: { delivered: "maybe", limit: "max_message_size" } };

describe("what a handler answers", () => {
  it("is measured as a whole message", async () => {
    await provide("text", (length) => "x".repeat(length));
    const around = '{"jsonrpc":"2.0","result":"","id":1}'.length;
    for (const [length, fits] of [
      [limit - around, true],
      [limit - around + 1, false],
      [limit * 10, false],
    ] as const) {
      const answer = peer.next();
      peer.say({ jsonrpc: "2.0", method: "text", params: [length], id: 1 });
      expect(await answer).toMatchObject(fits ? { result: "x".repeat(length), id: 1 } : { error: tooLarge, id: 1 });
    }
  });

  it("as an error is measured as well", async () => {
    await provide("fail", (length) => {
      throw new RpcError(7, "no", "x".repeat(length));
    });
    const answer = peer.next();
    peer.say({ jsonrpc: "2.0", method: "fail", params: [limit], id: 1 });
    expect(await answer).toMatchObject({ error: tooLarge, id: 1 });
  });

  it("item by item ends with the first that is too large, and its generator's finally runs", async () => {
    let cleaned = 0;
    await provide("items", function* (length) {
      try {
        yield 1;
        yield "x".repeat(length);
        yield 3;
      } finally {
        cleaned++;
      }
    });
    peer.say({ jsonrpc: "2.0", method: "items", params: [limit], stream: 8, id: 1 });
    await vi.waitFor(() => {
      expect(raw.length).toBe(2);
    });
    const [first, second] = raw.map((text) => JSON.parse(text) as Record<string, unknown>);
    expect(first.params).toEqual({ id: 1, seq: 0, value: 1 });
    expect(second).toMatchObject({ error: tooLarge, id: 1 });
    expect(cleaned).toBe(1);
  });

  it("all at once is no more than fits", async () => {
    await provide("items", function* (length) {
      for (let i = 0; i < 10; i++) yield "x".repeat(length);
    });
    const answer = peer.next();
    peer.say({ jsonrpc: "2.0", method: "items", params: [limit / 5], id: 1 });
    expect(await answer).toMatchObject({ error: tooLarge, id: 1 });
  });
});

it("a server with a limit that nothing fits is answered nevertheless", async () => {
  const connecting = connect(server.url);
  const other = await server.peer();
  await other.greet({ ...greeting, limits: { max_message_size: 1 } });
  const tiny = await connecting;
  const answer = other.next();
  other.say({ jsonrpc: "2.0", method: "nothing", id: 1 });
  expect(await answer).toMatchObject({ error: { code: -32006 } });
  expect((await failure(tiny.f())).code).toBe(-32006);
  await tiny.close();
});

it("at the real broker an item that is too large costs its stream alone", async () => {
  const real = await Server.start();
  const worker = await connect(real.ws, { log: { warn: vi.fn(), error: vi.fn() } });
  const caller = await connect(real.ws);
  await worker.provide("large", function* () {
    yield 1;
    yield "x".repeat(17 << 20);
  });
  await worker.provide("small", () => "small");
  const stream = caller.large.stream();
  expect(await stream.next()).toEqual({ done: false, value: 1 });
  expect((await failure(stream.next())).code).toBe(-32006);
  expect(await caller.small()).toBe("small");
  await Promise.all([worker.close(), caller.close()]);
  await real.stop();
});
