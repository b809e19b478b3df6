// Who a client is, at a server that asks for that (docs/access.md).
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../src/index.js";
import { failure } from "./failure.js";
import { Server } from "./server.js";

let server: Server;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "wirecall-"));
  const file = join(folder, "principals.json");
  const principals = [
    { name: "ann", tokens: ["a-token-of-ann+/="], call: ["sum"], subscribe: ["news.>"], provide: ["ann.>"] },
  ];
  writeFileSync(file, JSON.stringify(principals), { mode: 0o600 });
  server = await Server.start(["--principals-file", file]);
});
afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

const token = "a-token-of-ann+/=";

describe.each([
  ["ws", "hello"],
  ["ws", "subprotocol"],
  ["http", "hello"],
] as const)("a token by %s, %s", (scheme, tokenBy) => {
  it("lets the client in, to what is granted to it", async () => {
    const client = await connect(server[scheme], { token, tokenBy });
    expect(await client.sum(1, 2)).toBe(3);
    expect((await failure(client.subtract(2, 1))).code).toBe(-32601);
    expect((await failure(client.publish("news.x", 1))).code).toBe(-32003);
    await client.close();
  });
});

it("an unknown token, or none, is -32004 when it connects, by HTTP when it calls", async () => {
  expect((await failure(connect(server.ws, { token: "another" }))).code).toBe(-32004);
  expect((await failure(connect(server.ws))).code).toBe(-32004);
  const client = await connect(server.http, { token: "another" });
  expect((await failure(client.sum(1))).code).toBe(-32004);
});

it("an unknown token in the handshake ends it", async () => {
  const error = await failure(connect(server.ws, { token: "another", tokenBy: "subprotocol" }));
  expect([-32001, -32004]).toContain(error.code);
});

it("what is not granted is refused, and the client stays", async () => {
  const refused: unknown[] = [];
  const client = await connect(server.ws, { token, onRefused: (name, error) => refused.push([name, error.code]) });
  expect((await failure(client.subscribe("secrets", () => 0))).code).toBe(-32003);
  expect((await failure(client.provide("other", () => 0))).code).toBe(-32003);
  await client.subscribe("news.>", () => 0);
  await client.provide("ann.x", () => 0);
  expect(refused).toEqual([
    ["secrets", -32003],
    ["other", -32003],
  ]);
  expect(await client.sum(1)).toBe(1);
  await client.close();
});
