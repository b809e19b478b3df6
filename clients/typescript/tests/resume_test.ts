// A server that was started anew knows no session of before: a client that asks for its own is let in by its token.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../src/index.js";
import { deferred } from "./failure.js";
import { Server } from "./server.js";

const token = "a-token-of-ann";
let folder: string;
let file: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "wirecall-"));
  file = join(folder, "principals.json");
  const principals = [{ name: "ann", tokens: [token], call: [">"], subscribe: [">"], publish: [">"], provide: [">"] }];
  writeFileSync(file, JSON.stringify(principals), { mode: 0o600 });
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe.each(["hello", "subprotocol"] as const)("with its token by %s", (tokenBy) => {
  it("a client has its name, its methods and its calls again", async () => {
    const options = ["--principals-file", file];
    let server = await Server.start(options);
    const lost = deferred();
    const client = await connect(server.ws, {
      clientId: "worker",
      token,
      tokenBy,
      reconnectMin: 1,
      reconnectMax: 20,
      onConnection: (event) => {
        if (!event.connected) lost.resolve();
      },
    });
    await client.provide("mine", () => "mine");
    await client.provide("ours", () => "ours");
    expect(await client.mine()).toBe("mine");
    await Promise.all([server.stop(), lost.promise]);
    const waiting = [client.sum(1, 2), client.batch((b) => [b.sum(3), b.echo("x")])];
    server = await Server.start(options, server.port);
    expect(await Promise.all(waiting)).toEqual([3, [3, "x"]]);
    expect(await client.mine.with({ to: "worker" })()).toBe("mine");
    expect(await client.ours()).toBe("ours");
    await client.close();
    await server.stop();
  });
});
