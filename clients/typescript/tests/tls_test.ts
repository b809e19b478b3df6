// What is encrypted, at a server whose certificate it has made itself: Node is told to accept it.
import { afterAll, beforeAll, describe, expect, it } from "vitest";

import { connect } from "../src/index.js";
import { Server } from "./server.js";

let server: Server;

beforeAll(async () => {
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
  process.removeAllListeners("warning"); // Node warns of that
  server = await Server.start(["--tls-self-signed"]);
});
afterAll(async () => {
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  await server.stop();
});

describe.each(["wss", "https"] as const)("by %s", (scheme) => {
  it("calls, and reads a stream", async () => {
    const client = await connect(`${scheme}://127.0.0.1:${String(server.port)}`);
    expect(await client.call("subtract", [42, 23])).toBe(19);
    expect(await client.call("echo", ["x".repeat(300_000)])).toHaveLength(300_000);
    const items: unknown[] = [];
    for await (const item of client.count.stream(100)) items.push(item);
    expect(items).toHaveLength(100);
    await client.close();
  });
});

describe("by wss", () => {
  it("provides and subscribes", async () => {
    const url = `wss://127.0.0.1:${String(server.port)}`;
    const provider = await connect(url);
    await provider.provide("twice", (n: number) => 2 * n, { params: ["n"] });
    const came = new Promise((resolve) => {
      void provider.subscribe("news.>", (topic, value) => {
        resolve([topic, value]);
      });
    });
    const caller = await connect(url);
    expect(await caller.call("twice", [21])).toBe(42);
    const deliver = async (): Promise<void> => {
      if ((await caller.publish("news.today", 7)) === 0) await deliver();
    };
    await deliver();
    expect(await came).toEqual(["news.today", 7]);
    await caller.close();
    await provider.close();
  });

  it("is refused where nobody vouches for the certificate", async () => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = "1";
    try {
      await expect(connect(`wss://127.0.0.1:${String(server.port)}`)).rejects.toThrow();
    } finally {
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
    }
  });
});
