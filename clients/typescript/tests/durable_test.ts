// Durable topics, consumers and queues, at a broker with a durable store.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type Delivery, durable } from "../src/durable.js";
import { type Client, connect, type ConnectOptions, RpcError } from "../src/index.js";
import { deferred, failure } from "./failure.js";
import { Server } from "./server.js";

const folder = mkdtempSync(join(tmpdir(), "wirecall-durable-"));
let server: Server;
beforeAll(async () => {
  server = await Server.start(["--durable", folder, "--durable-fsync", "everysec"]);
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

const log = { warn: vi.fn(), error: vi.fn() };
let client: Client;
let other: Client;
const opened: Client[] = [];
async function open(options?: ConnectOptions): Promise<Client> {
  const made = await connect(server.ws, { log, ...options });
  opened.push(made);
  return made;
}
beforeEach(async () => {
  vi.resetAllMocks();
  client = await open();
  other = await open();
});
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()));
});

// Topics, consumers and methods of each test are its own: what is kept outlives it.
let tests = 0;
beforeEach(() => {
  tests++;
});
const own = (name: string): string => `${name}${String(tests)}`;

interface Row {
  name: string;
  position: number;
}
async function position(consumer: string): Promise<number | undefined> {
  const { consumers } = await other.call<{ consumers: Row[] }>("rpc.durable.ls");
  return consumers.find((row) => row.name === consumer)?.position;
}

/** What comes, one by one. */
class Inbox<T> {
  readonly #came: T[] = [];
  #wanted: (() => void) | undefined;

  put = (value: T): void => {
    this.#came.push(value);
    this.#wanted?.();
  };

  async next(): Promise<T> {
    for (;;) {
      const value = this.#came.shift();
      if (value !== undefined) return value;
      await new Promise<void>((resolve) => {
        this.#wanted = resolve;
      });
    }
  }
}

describe("a durable publish", () => {
  it("is answered with the event's number once it is safe, and the same message id is kept once", async () => {
    const topic = own("orders.new");
    const first = await durable(client).publish(topic, { id: 1 }, { msgId: "one" });
    expect(await durable(client).publish(topic, { id: 1 }, { msgId: "one" })).toEqual({ ...first, duplicate: true });
    expect(await durable(client).publish(topic, 7)).toEqual({ seq: first.seq + 1 });
    const { events } = await client.call<{ events: { params: unknown }[] }>("rpc.durable.read", { topic });
    expect(events.map(({ params }) => params)).toEqual([{ id: 1 }, [7]]);
  });

  it("works by HTTP, and may be retained", async () => {
    const topic = own("state");
    const http = await connect(server.http);
    expect(await durable(http).publish(topic, "on", { retain: true })).toEqual({ seq: expect.any(Number) as number });
    const heard = new Inbox<unknown>();
    await client.subscribe(
      topic,
      (_topic, value) => {
        heard.put(value);
      },
      { last: true },
    );
    expect(await heard.next()).toBe("on");
  });

  it("without a store says what helps", async () => {
    const plain = await Server.start();
    const away = await connect(plain.ws);
    expect((await failure(durable(away).publish("a", 1))).data).toMatchObject({ reason: "needs_durable" });
    await away.close();
    await plain.stop();
  });
});

describe("a consumer", () => {
  it("is sent what is kept, in order, and goes on behind what its handlers have returned from", async () => {
    const [topic, name] = [own("orders"), own("billing")];
    for (const id of [1, 2]) await durable(other).publish(`${topic}.new`, { id });
    const heard = new Inbox<[string, unknown, Delivery]>();
    const subscription = durable(client).subscribe(
      `${topic}.>`,
      (...given) => {
        heard.put(given);
      },
      { durable: name, start: "first" },
    );
    await subscription;
    expect(subscription.topic).toBe(`${topic}.>`);
    const [came, value, { seq, delivery, signal }] = await heard.next();
    expect([came, value, delivery, signal.aborted]).toEqual([`${topic}.new`, { id: 1 }, 1, false]);
    const second = await heard.next();
    expect(second[1]).toEqual({ id: 2 });
    expect(second[2].seq).toBe(seq + 1);
    await vi.waitFor(async () => {
      expect(await position(name)).toBe(seq + 1);
    });
    await subscription.unsubscribe();
    await subscription.unsubscribe();
    const { seq: third } = await durable(other).publish(`${topic}.new`, "later");
    const again = new Inbox<unknown>();
    await durable(other).subscribe(
      `${topic}.>`,
      (_topic, value) => {
        again.put(value);
      },
      { durable: name },
    );
    expect(await again.next()).toBe("later");
    await vi.waitFor(async () => {
      expect(await position(name)).toBe(third);
    });
  });

  it("has an event again where the handler throws, and a dead letter has the error", async () => {
    const [topic, name] = [own("failing"), own("failing")];
    const heard = new Inbox<[number, unknown]>();
    await durable(client).subscribe(
      topic,
      (_topic, value, { delivery }) => {
        heard.put([delivery, value]);
        if (value === "poison") throw new RpcError(7, "never", { why: "it is poison" });
        if (delivery === 1) throw new Error("not yet");
      },
      { durable: name, maxDeliver: 2 },
    );
    const dead = new Inbox<unknown>();
    await durable(client).subscribe(
      `dead.${name}`,
      (_topic, value) => {
        dead.put(value);
      },
      { durable: own("graves") },
    );
    await durable(other).publish(topic, "good");
    expect(await heard.next()).toEqual([1, "good"]);
    expect(await heard.next()).toEqual([2, "good"]);
    expect(log.error).toHaveBeenCalledTimes(1);
    const { seq } = await durable(other).publish(topic, "poison");
    expect(await heard.next()).toEqual([1, "poison"]);
    expect(await heard.next()).toEqual([2, "poison"]);
    expect(await dead.next()).toEqual({
      topic,
      seq,
      deliveries: 2,
      params: ["poison"],
      error: { code: 7, message: "never", data: { why: "it is poison" } },
    });
  });

  it("has several events at work, and no more than it may", async () => {
    const [topic, name] = [own("slow"), own("slow")];
    const gate = deferred();
    const heard = new Inbox<unknown>();
    await durable(client).subscribe(
      topic,
      async (_topic, value) => {
        heard.put(value);
        await gate.promise;
      },
      { durable: name, maxInFlight: 2 },
    );
    const seqs: number[] = [];
    for (const value of ["a", "b", "c"]) seqs.push((await durable(other).publish(topic, value)).seq);
    expect([await heard.next(), await heard.next()]).toEqual(["a", "b"]);
    expect(await position(name)).toBe((seqs[0] ?? 0) - 1);
    gate.resolve();
    expect(await heard.next()).toBe("c");
    await vi.waitFor(async () => {
      expect(await position(name)).toBe(seqs[2]);
    });
  });

  it("is told that an event's time is up, and a late result acknowledges it", async () => {
    const [topic, name] = [own("late"), own("late")];
    const signals = new Inbox<Delivery>();
    const gate = deferred();
    await durable(client).subscribe(
      topic,
      async (_topic, _value, delivery) => {
        signals.put(delivery);
        if (delivery.delivery === 1) await gate.promise;
        else await new Promise(() => undefined);
      },
      { durable: name, ackWait: 50, maxDeliver: 0 },
    );
    const { seq } = await durable(other).publish(topic, 1);
    const first = await signals.next();
    expect((await signals.next()).delivery).toBe(2);
    expect(first.signal.aborted).toBe(true);
    expect(first.signal.reason).toMatchObject({ code: -32800 });
    gate.resolve();
    await vi.waitFor(async () => {
      expect(await position(name)).toBe(seq);
    });
  });

  it("goes on at another member with what a lost one had", async () => {
    const [topic, name] = [own("moved"), own("moved")];
    const held = new Inbox<Delivery>();
    await durable(client).subscribe(
      topic,
      (_topic, _value, delivery) => {
        held.put(delivery);
        return new Promise(() => undefined);
      },
      { durable: name },
    );
    await durable(other).publish(topic, "kept");
    const { signal } = await held.next();
    const heard = new Inbox<[unknown, number]>();
    await durable(other).subscribe(
      topic,
      (_topic, value, { delivery }) => {
        heard.put([value, delivery]);
      },
      { durable: name },
    );
    await client.close();
    expect(await heard.next()).toEqual(["kept", 2]);
    expect(signal.aborted).toBe(true);
  });

  it("is joined once by a client, and refused where its name or its topic cannot be", async () => {
    const [topic, name] = [own("once"), own("once")];
    const subscription = await durable(client).subscribe(topic, () => 0, { durable: name });
    expect(() => durable(client).subscribe(topic, () => 0, { durable: name })).toThrow("Conflict");
    expect((await failure(durable(other).subscribe(`${topic}.x`, () => 0, { durable: name }))).code).toBe(-32007);
    expect((await failure(durable(other).subscribe(topic, () => 0, { durable: "no name" }))).code).toBe(-32602);
    await subscription.unsubscribe();
    await durable(client).subscribe(topic, () => 0, { durable: name });
    const mixed = { durable: own("mixed"), group: "g" };
    expect(() => durable(client).subscribe(topic, () => 0, mixed)).toThrow("no option group of a consumer");
    const http = await connect(server.http);
    expect(() => durable(http).subscribe(topic, () => 0, { durable: name })).toThrow("subscribe needs a connection");
  });
});

describe("a queue", () => {
  it("keeps a call until a provider has answered it, and tells its result", async () => {
    const method = own("report");
    const job = await durable(client).push(method, { year: 2024 }, { msgId: "r", jobTimeout: 60_000 });
    expect(await durable(client).push(method, { year: 2024 }, { msgId: "r" })).toBe(job);
    expect(await durable(client).result(job)).toMatchObject({ id: job, method, state: "waiting", deliveries: 0 });
    const [waiting] = await durable(client).peek(method, { count: 1 });
    expect(waiting).toMatchObject({ id: job, params: { year: 2024 } });
    const done = new Inbox<unknown>();
    await client.subscribe(`queue.done.${method}`, (_topic, value) => {
      done.put(value);
    });
    await other.provide(method, ({ year }: { year: number }) => year + 1);
    expect(await done.next()).toEqual({ id: job, deliveries: 1, result: 2025 });
    const { result, error } = await durable(client).result<number>(job);
    expect([result, error]).toEqual([2025, undefined]);
    expect(await durable(client).peek(method)).toEqual([]);
    expect(await durable(client).peek(method, { state: "done", after: job })).toEqual([]);
  });

  it("makes a job a few times, and the last error is the dead job's", async () => {
    const method = own("broken");
    await other.provide(method, () => {
      throw new RpcError(9, "out of paper");
    });
    const http = await connect(server.http);
    const job = await durable(http).push(method, [1], { maxDeliver: 1 });
    await vi.waitFor(async () => {
      expect((await durable(http).result(job)).state).toBe("dead");
    });
    const [dead] = await durable(http).peek(method, { state: "dead" });
    expect(dead.params).toEqual([1]);
    expect(dead.error).toBeInstanceOf(RpcError);
    expect(dead.error).toMatchObject({ code: 9, message: "out of paper" });
  });

  it("does not begin a job before its delay, and refuses wrong options", async () => {
    const method = own("delayed");
    const job = await durable(client).push(method, undefined, { delay: 3_600_000 });
    await other.provide(method, () => 1);
    expect((await durable(client).result(job)).state).toBe("waiting");
    expect((await failure(durable(client).push("rpc.ping"))).code).toBe(-32602);
    expect((await failure(durable(client).result(1 << 30))).code).toBe(-32602);
    const wrong = { delay_ms: 1 } as object;
    await expect(durable(client).push(method, [], wrong)).rejects.toThrow("no option delay_ms of a call");
  });
});
