// The file for pages without a bundler, in Chromium. A page of an origin that the server allows, and one of another.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type * as Wirecall from "../src/index.js";
import { connect } from "../src/index.js";
import { hasBrowser, launch, PageServer, show } from "./page_server.js";
import { Server } from "./server.js";

const html = `<!doctype html><title>A page</title><script type="module">
import * as wirecall from "/wirecall.min.js";
window.wirecall = wirecall;
</script>`;

declare global {
  interface Window {
    wirecall: typeof Wirecall;
  }
}

describe.skipIf(!hasBrowser)("a page", () => {
  let browser: Browser;
  let pages: PageServer;
  let foreign: PageServer;
  let server: Server;
  let page: Page;

  beforeAll(async () => {
    [pages, foreign] = [await PageServer.start(html), await PageServer.start(html)];
    server = await Server.start(["--allow-origins", pages.origin]);
    browser = await launch();
  }, 60_000);
  afterAll(async () => {
    await browser.close();
    await server.stop();
    for (const site of [pages, foreign]) site.stop();
  });
  beforeEach(async () => {
    page = await open(pages);
    return () => page.close();
  });

  async function open(site: PageServer): Promise<Page> {
    const opened = await browser.newPage();
    await opened.goto(site.origin);
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
    await show(page, `calls-by-${scheme}`, results);
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
    await show(page, "provides-and-hears", items.length);
    await page.close();
    // The broker notices that it has left.
    await expect
      .poll(() => node.page.title().catch((error: unknown) => (error as Wirecall.RpcError).code))
      .toBe(-32601);
    await node.close();
  });

  it("reconnects when its server is started anew, with what it provides", async () => {
    let real = await Server.start(["--allow-origins", pages.origin]);
    const { port } = real;
    try {
      await page.evaluate(async (url) => {
        const c = await window.wirecall.connect(url, { reconnectMax: 100 });
        await c.provide("page.title", () => document.title);
      }, real.ws);
      await real.stop();
      real = await Server.start(["--allow-origins", pages.origin], port);
      const node = await connect(real.ws);
      await expect.poll(() => node.page.title().catch((error: unknown) => error), { timeout: 10_000 }).toBe("A page");
      await show(page, "reconnected", await node.page.title());
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
      await show(other, "of-another-origin", message);
      expect(message).toContain("allow this page's origin");
    }
    await other.close();
  });
});
