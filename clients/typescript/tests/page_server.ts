// Serves a page and the client's one file, as a web site would; and the browser that loads it, where there is one.
import { existsSync, readFileSync } from "node:fs";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";

const bundle = fileURLToPath(new URL("../dist/wirecall.min.js", import.meta.url));
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Whether there is one, and it is wanted: it takes as long to start as all else takes. */
export const hasBrowser = existsSync(executablePath) && process.env.WIRECALL_BROWSER !== "none";
if (!hasBrowser)
  console.warn(
    `skipped: what runs in a browser: there is no ${executablePath}, which Debian's chromium has, or none is wanted`,
  );

export function launch(): Promise<Browser> {
  return chromium.launch({ executablePath, args: ["--no-sandbox"] });
}

const screenshots = fileURLToPath(new URL("../build/screenshots/", import.meta.url));

/** Writes what was found into the page, and saves a picture of it in build/screenshots, for people. */
export async function show(page: Page, name: string, found: unknown): Promise<void> {
  await page.evaluate(
    (text) => {
      const shown = document.createElement("pre");
      shown.textContent = text;
      document.body.append(document.title, shown);
    },
    JSON.stringify(found, undefined, 2),
  );
  await page.screenshot({ path: `${screenshots}${name}.png` });
}

export class PageServer {
  private constructor(readonly server: HttpServer) {}

  static start(html: string): Promise<PageServer> {
    const server = createServer((request, response) => {
      const script = request.url === "/wirecall.min.js";
      response.writeHead(200, { "Content-Type": script ? "text/javascript" : "text/html" });
      response.end(script ? readFileSync(bundle) : html);
    });
    return new Promise((resolve) =>
      server.listen(0, "127.0.0.1", () => {
        resolve(new PageServer(server));
      }),
    );
  }

  get origin(): string {
    return `http://127.0.0.1:${String((this.server.address() as AddressInfo).port)}`;
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}
