// The file for pages without a bundler, in Chromium. A page of an origin that the server allows, and one of another.
import { existsSync, readFileSync } from "node:fs";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type * as Wirecall from "../src/index.js";
import { connect } from "../src/index.js";
import { Server } from "./server.js";

const executable = process.env.CHROMIUM ?? "/usr/bin/chromium";
const bundle = fileURLToPath(new URL("../dist/wirecall.min.js", import.meta.url));
const missing = [executable, bundle].filter((file) => !existsSync(file));
if (missing.length > 0) console.warn(`skipped: the tests in a browser: there is no ${missing.join(" and no ")}`);

const html = `<!doctype html><title>A page</title><script type="module">
import * as wirecall from "/wirecall.min.js";
window.wirecall = wirecall;
</script>`;

declare global {
  interface Window {
    wirecall: typeof Wirecall;
  }
}

function serve(): Promise<HttpServer> {
  const server = createServer((request, response) => {
    const script = request.url === "/wirecall.min.js";
    response.writeHead(200, { "Content-Type": script ? "text/javascript" : "text/html" });
    response.end(script ? readFileSync(bundle) : html);
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => { resolve(server); }));
}

const originOf = (server: HttpServer): string => `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;

describe.skipIf(missing.length > 0)("a page", () => {
  let browser: Browser;
  let pages: HttpServer;
  let foreign: HttpServer;
  let server: Server;
  let page: Page;

  beforeAll(async () => {
    [pages, foreign] = [await serve(), await serve()];
    server = await Server.start(["--allow-origins", originOf(pages)]);
    browser = await chromium.launch({ executablePath: executable, args: ["--no-sandbox"] });
  }, 60_000);
  afterAll(async () => {
    await browser.close();
    await server.stop();
    for (const http of [pages, foreign]) http.close();
  });
  beforeEach(async () => {
    page = await open(pages);
    return () => page.close();
  });

  async function open(origin: HttpServer): Promise<Page> {
    const opened = await browser.newPage();
    await opened.goto(originOf(origin));
    await opened.waitForFunction(() => "wirecall" in window);
    return opened;
  }

  it.each(["ws", "http"] as const)("calls and reads streams by %s", async (scheme) => {
    const results = await page.evaluate(async (url) => {
      const { connect, RpcError } = window.wirecall;
      const c = await connect(url, { bigint: true });
      const items: unknown[] = [];
      for await (const item of c.count.stream(200)) items.push(item);
      const error: unknown = await c.smu(1).catch((reason: unknown) => reason);
      const late: unknown = await c.sleep
        .with({ timeout: 50 })(60_000)
        .catch((reason: unknown) => reason);
      const results = {
        sum: await c.sum(2, 3),
        subtract: await c.subtract({ minuend: 42, subtrahend: 23 }, { timeout: 5000 }),
        items: items.length,
        last: items.at(-1),
        error: error instanceof RpcError && error.code,
        late: late instanceof RpcError && late.code,
        large: String(await c.echo(2n ** 64n - 1n)),
        batch: await c.batch((b) => [b.sum(1, 1), b.echo("x")]),
      };
      await c.close();
      return results;
    }, server[scheme]);
    expect(results).toEqual({
      sum: 5,
      subtract: 19,
      items: 200,
      last: 199,
      error: -32601,
      late: -32002,
      large: "18446744073709551615",
      batch: [2, "x"],
    });
  });

  it("provides methods, and hears events", async () => {
    const node = await connect(server.ws);
    await page.evaluate(async (url) => {
      const c = await window.wirecall.connect(url, { clientId: "page" });
      await c.provide("page.title", () => document.title);
      await c.provide("page.count", async function* (n: number) {
        for (let i = 0; i < n; i++) {
          await new Promise((resolve) => setTimeout(resolve));
          yield i;
        }
      });
      await c.subscribe("title", (_topic, value: string) => {
        document.title = value;
      });
    }, server.ws);
    expect(await node.page.title()).toBe("A page");
    expect(await node.publish("title", "Told")).toBe(1);
    await page.waitForFunction(() => document.title === "Told");
    expect(await node.page.title.with({ to: "page" })()).toBe("Told");
    const items: number[] = [];
    for await (const item of node.page.count.stream(100)) items.push(item);
    expect(items).toHaveLength(100);
    await page.close();
    // The broker notices at once that it has left.
    await expect(node.page.title()).rejects.toMatchObject({ code: -32601 });
    await node.close();
  });

  it("reconnects when its server is started anew, with what it provides", async () => {
    let real = await Server.start(["--allow-origins", originOf(pages)]);
    const { port } = real;
    try {
      await page.evaluate(async (url) => {
        const c = await window.wirecall.connect(url, { reconnectMax: 100 });
        await c.provide("page.title", () => document.title);
      }, real.ws);
      await real.stop();
      real = await Server.start(["--allow-origins", originOf(pages)], port);
      const node = await connect(real.ws);
      await expect.poll(() => node.page.title().catch((error: unknown) => error), { timeout: 10_000 }).toBe("A page");
      await node.close();
    } finally {
      await real.stop();
    }
  });

  it("of another origin is not let in, and is told what to look at", async () => {
    const other = await open(foreign);
    for (const url of [server.ws, server.http]) {
      const message = await other.evaluate(async (url) => {
        const { connect } = window.wirecall;
        try {
          const c = await connect(url);
          return `it was let in: ${String(await c.sum(1, 2))}`;
        } catch (error) {
          return String(error);
        }
      }, url);
      expect(message).toContain("allow this page's origin");
    }
    await other.close();
  });
});
