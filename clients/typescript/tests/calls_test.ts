import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Client, connect, ErrorCode } from "../src/index.js";
import { failure } from "./failure.js";
import { Server } from "./server.js";

let server: Server;
beforeAll(async () => {
  server = await Server.start();
});
afterAll(async () => {
  await server.stop();
});

describe.each(["ws", "http"] as const)("calls by %s", (scheme) => {
  let client: Client;
  beforeAll(async () => {
    client = await connect(server[scheme]);
  });
  afterAll(async () => {
    await client.close();
  });

  it("a method is called by position, by name, and by any name", async () => {
    expect(await client.sum(2, 3)).toBe(5);
    expect(await client.subtract({ minuend: 42, subtrahend: 23 })).toBe(19);
    expect(await client.subtract(42, 23)).toBe(19);
    expect(await client.call("sum", [1, 2, 4])).toBe(7);
    expect(await client.call("subtract", { subtrahend: 23, minuend: 42 })).toBe(19);
  });

  it("an object behind params by name is options, and behind with everything is params", async () => {
    expect(await client.subtract({ minuend: 5, subtrahend: 3 }, { timeout: 5000 })).toBe(2);
    expect(await client.subtract.with({ timeout: 5000 })(5, 3)).toBe(2);
    expect(await client.with({ timeout: 5000 }).subtract({ minuend: 5, subtrahend: 3 })).toBe(2);
    const two = await failure(client.echo.with({})({ a: 1 }, { timeout: 1 }));
    expect(two.data).toMatchObject({ expected: "nothing", got: '{"timeout":1}' });
    await expect(client.echo({ value: 1 }, { timout: 1 } as object)).rejects.toThrow(
      "there is no option timout of a call",
    );
  });

  it("then, toJSON and symbols are nobody's method, and call reaches them", async () => {
    const any = client as unknown as Record<string | symbol, unknown>;
    expect(any.then).toBeUndefined();
    expect(any.toJSON).toBeUndefined();
    expect(any[Symbol.toPrimitive]).toBeUndefined();
    const method = client.sum as unknown as Record<string | symbol, unknown>;
    expect(method.then).toBeUndefined();
    expect(method[Symbol.asyncIterator]).toBeUndefined();
    expect((await failure(client.call("then"))).code).toBe(-32601);
  });

  it("an error has the server's code, message and data", async () => {
    const missing = await failure(client.smu(1));
    expect(missing).toMatchObject({ code: -32601, message: "Method not found", data: { did_you_mean: "sum" } });
    expect(missing.stack).toContain("RpcError: Method not found (-32601): did you mean 'sum'?");
    const wrong = await failure(client.subtract(1, "x"));
    expect(wrong.code).toBe(ErrorCode.invalidParams);
    expect(wrong.data).toEqual({ loc: ["subtrahend"], expected: "integer", got: '"x"' });
    expect(await failure(client.fail(7, "no such thing"))).toMatchObject({ code: 7, message: "no such thing" });
    expect(JSON.parse(JSON.stringify(missing))).toEqual({
      code: -32601,
      message: "Method not found",
      data: { did_you_mean: "sum" },
    });
  });

  it("a call whose time is up ends with -32002, and the others go on", async () => {
    const begun = performance.now();
    const late = failure(client.sleep.with({ timeout: 60 })(60_000));
    const other = client.sum(1, 1);
    expect(await late).toMatchObject({ code: -32002, delivered: "maybe" });
    expect(performance.now() - begun).toBeLessThan(5000);
    expect(await other).toBe(2);
    expect(await client.sum(3, 4)).toBe(7);
  });

  it("a call of no time ends at once, undelivered", async () => {
    expect(await failure(client.sum.with({ timeout: 0 })(1, 2))).toMatchObject({ code: -32002 });
  });

  it("a signal cancels a call, with its reason as the cause", async () => {
    const stop = new AbortController();
    const cancelled = failure(client.sleep.with({ signal: stop.signal })(60_000));
    await client.sum(1, 2);
    stop.abort("enough");
    expect(await cancelled).toMatchObject({ code: -32800, cause: "enough" });
    expect(await failure(client.sum.with({ signal: stop.signal })(1))).toMatchObject({ code: -32800, delivered: "no" });
  });

  it("what JSON cannot hold is refused before it is sent", async () => {
    await expect(client.echo(NaN)).rejects.toThrow(TypeError);
    await expect(client.echo("\ud800")).rejects.toThrow(TypeError);
    await expect(client.echo({ value: [{ deep: Infinity }] })).rejects.toThrow("Infinity has no form in JSON");
    await expect(client.call("echo", 5 as unknown as object)).rejects.toThrow("params are an array or an object");
    expect(await client.echo("😀\\ud800")).toBe("😀\\ud800");
  });

  it("a notification is sent, and nothing comes back", async () => {
    await client.notify("echo", [1]);
    await client.notify("no.such.method");
    expect(await client.sum(1)).toBe(1);
  });

  it("integers keep all digits where they are asked for as bigint", async () => {
    const large = 2n ** 64n - 1n;
    expect(await client.echo.with({ bigint: true })(large)).toBe(large);
    expect(await client.echo.with({ bigint: true })([1, 1.5, 9007199254740993n])).toEqual([1, 1.5, 9007199254740993n]);
    expect(await client.sum.with({ bigint: true })(9007199254740993n, 2n)).toBe(9007199254740995n);
    expect(await client.echo(large)).toBe(2 ** 64);
  });

  it("bytes travel as wirecall writes them", async () => {
    expect(await client.echo({ value: { bytes: new Uint8Array([1, 2, 255]) } })).toEqual({ bytes: { $bytes: "AQL/" } });
  });

  it("a closed client makes no more calls", async () => {
    const other = await connect(server[scheme]);
    const waiting = failure(other.sleep(60_000));
    if (scheme === "ws") await other.sum(1, 2);
    await other.close();
    expect((await waiting).code).toBe(-32001);
    expect(await failure(other.sum(1))).toMatchObject({ code: -32001, delivered: "no" });
  });
});

it("connecting fails with a reason and a cure where nobody listens", async () => {
  const stopped = await Server.start();
  await stopped.stop();
  const error = await failure(connect(stopped.ws));
  expect(error).toMatchObject({ code: -32001, delivered: "no" });
  expect(error.message).toContain(`cannot connect to ${stopped.ws}`);
  expect(error.message).toContain("start the server");
  const client = await connect(stopped.http);
  expect(await failure(client.sum(1))).toMatchObject({ code: -32001, delivered: "no" });
});

it("without a URL it is the port that a server listens on by default", async () => {
  vi.stubGlobal("WebSocket", function (url: string): never {
    throw new TypeError(`asked for ${url}`);
  });
  try {
    await expect(connect()).rejects.toThrow("asked for ws://127.0.0.1:8545");
  } finally {
    vi.unstubAllGlobals();
  }
});

it("a URL or an option that cannot be meant is refused", async () => {
  await expect(connect("tcp://127.0.0.1:8545")).rejects.toThrow("ws:// or wss://");
  await expect(connect([])).rejects.toThrow("ws:// or wss://");
  await expect(connect(server.ws, { timout: 3 } as object)).rejects.toThrow("there is no option timout of a client");
});
