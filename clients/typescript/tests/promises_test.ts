// A promise that nobody waits for does not end a program.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Client, connect } from "../src/index.js";
import { Server } from "./server.js";

let server: Server;
beforeAll(async () => {
  server = await Server.start();
});
afterAll(async () => {
  await server.stop();
});

const unhandled: unknown[] = [];
const note = (reason: unknown): void => void unhandled.push(reason);
let others: NodeJS.UnhandledRejectionListener[] = [];
beforeEach(() => {
  others = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", note);
});
afterEach(() => {
  process.removeAllListeners("unhandledRejection");
  for (const other of others) process.on("unhandledRejection", other);
  unhandled.length = 0;
});
// They are told when all microtasks are done.
const settled = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));

describe.each(["ws", "http"] as const)("by %s", (scheme) => {
  let client: Client;
  beforeEach(async () => {
    client = await connect(server[scheme]);
    return () => client.close();
  });

  it("a batch whose function fails has calls that nobody has to catch", async () => {
    const filled = client.batch((b) => {
      void b.one();
      void b.two.with({ timeout: 5000 })({ x: 1 });
      void b.call("three");
      void b.notify("four");
      throw new Error("filled badly");
    });
    await expect(filled).rejects.toThrow("filled badly");
    await settled();
    expect(unhandled).toEqual([]);
  });

  it("a notification that cannot be sent is nobody's concern, alone or in a batch", async () => {
    await client.close();
    void client.notify("told");
    await client.batch((b) => {
      void b.notify("told");
      return 1;
    });
    await settled();
    expect(unhandled).toEqual([]);
  });

  it("a stream that is left, or ends with an error that nobody reads, tells nobody", async () => {
    const left = client.count.stream(1000);
    await left.next();
    await left.return();
    const failed = client.smu.stream();
    void failed.next().catch(() => undefined);
    const late = client.sleep.stream(60_000);
    const next = late.next().catch(() => undefined);
    await client.close();
    await next;
    await settled();
    expect(unhandled).toEqual([]);
  });
});

it("what a closed client is asked for, and a lost connection, tell nobody either", async () => {
  const own = await Server.start();
  const log = { warn: () => undefined, error: () => undefined };
  const client = await connect(own.ws, { log });
  client.provide("a", () => 1);
  client.subscribe("b", () => 0);
  await own.stop();
  client.provide("c", () => 1);
  const registration = client.subscribe("d", () => 0);
  void registration.unsubscribe();
  await client.close();
  client.provide("e", () => 1);
  client.subscribe("f", () => 0);
  await settled();
  expect(unhandled).toEqual([]);
});
