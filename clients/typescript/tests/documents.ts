// Runs what a Markdown page shows.
//
// - A `ts` block is a program. `expression; // → value` is checked; the package is the one in dist, found by its name.
// - An `html` block is a page, loaded in Chromium where there is one.
// - A `console` block has commands behind `$ `; one that ends in `&` is a server, which the end of the page ends.
//
// Pages name the ports 8545 and 8546; what runs is given others, and a folder of its own for files.
import { execFile, spawn } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { basename, delimiter, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { connect } from "../src/index.js";
import { hasBrowser, launch, PageServer, show } from "./page_server.js";
import { command } from "./server.js";

const run = promisify(execFile);
const folder = fileURLToPath(new URL("../build/pages/", import.meta.url));
const packageFolder = fileURLToPath(new URL("..", import.meta.url));

export interface Block {
  kind: string;
  text: string;
  line: number;
}

/** Of a page, or of what stands under one of its headings. */
export function blocksOf(page: URL, section = ""): Block[] {
  const text = readFileSync(page, "utf8");
  const begin = section === "" ? 0 : text.indexOf(`${section}\n`);
  const following = text.slice(begin + section.length).search(/^## /m);
  const end = section === "" || following < 0 ? text.length : begin + section.length + following;
  return [...text.matchAll(/^```(ts|html|console)\n(.*?)^```$/gms)]
    .filter((found) => found.index >= begin && found.index < end)
    .map((found) => ({
      kind: found[1],
      text: found[2],
      line: text.slice(0, found.index).split("\n").length + 1,
    }));
}

/** A `ts` block as a program that checks what it shows. */
function programOf(block: Block, ports: Ports): string {
  const lines = ports.put(block.text).split("\n");
  const checked = lines.map((line, at) =>
    line.replace(
      /^(\s*)(.+?); \/\/ → (.+)$/,
      (_all, indent: string, expression: string, value: string) =>
        `${indent}shown(${String(block.line + at)}, ${expression}, ${value});`,
    ),
  );
  const prelude = [
    'import { deepStrictEqual } from "node:assert";',
    "function shown(line: number, got: unknown, expected: unknown): void {",
    "  deepStrictEqual(got, expected, `line ${line}: it is ${JSON.stringify(got, (_, v) => typeof v === 'bigint' ? `${v}n` : v)}`);",
    "  checks++;",
    "}",
    "let checks = 0;",
  ];
  return [...prelude, ...checked, "console.log(`checks: ${checks}`);", "process.exit(0);", "export {};"].join("\n");
}

/** Those that are used in place of the ones that a page names. */
class Ports {
  private constructor(
    readonly first: number,
    readonly second: number,
  ) {}

  static async free(): Promise<Ports> {
    return new Ports(await freePort(), await freePort());
  }

  put(text: string): string {
    return text.replaceAll("8545", String(this.first)).replaceAll("8546", String(this.second));
  }
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export interface Outcome {
  programs: number;
  checks: number;
  pages: number;
  commands: number;
}

/** Runs the blocks of a page. */
export async function runPage(page: URL, section = ""): Promise<Outcome> {
  const outcome: Outcome = { programs: 0, checks: 0, pages: 0, commands: 0 };
  const ports = await Ports.free();
  const blocks = blocksOf(page, section);
  const name = basename(page.pathname, ".md") + (section === "" ? "" : "-section") + String(ports.first);
  const html = blocks.find(({ kind }) => kind === "html")?.text ?? "";
  const web = await PageServer.start(ports.put(html));
  const servers: ReturnType<typeof spawn>[] = [];
  const files = `${folder}${name}-files`;
  mkdirSync(files, { recursive: true });
  try {
    await checkTypes(blocks, name, ports);
    for (const block of blocks) {
      if (block.kind === "ts") {
        outcome.checks += await runProgram(block, name, ports);
        outcome.programs++;
      } else if (block.kind === "html") {
        if (await loadPage(web.origin, `ws://127.0.0.1:${String(ports.first)}`)) outcome.pages++;
      } else {
        for (const line of block.text.split("\n").filter((text) => text.startsWith("$ "))) {
          outcome.commands++;
          const words = ports.put(line.slice(2).replace(/wirecall serve(?! --port)/, "wirecall serve --port 8545"));
          const environment = {
            ...process.env,
            PATH: `${dirname(command)}${delimiter}${process.env.PATH ?? ""}`,
            WIRECALL_URL: `tcp://127.0.0.1:${String(ports.first)}`,
          };
          if (words.endsWith("&")) {
            const text = `exec ${words.slice(0, -1)} --allow-origins ${web.origin}`;
            servers.push(await started(text, environment, files));
          } else {
            await run("bash", ["-c", words], { env: environment, cwd: files });
          }
        }
      }
    }
  } finally {
    for (const server of servers) server.kill("SIGKILL");
    web.stop();
    rmSync(files, { recursive: true, maxRetries: 5 });
  }
  return outcome;
}

function started(text: string, env: NodeJS.ProcessEnv, cwd: string): Promise<ReturnType<typeof spawn>> {
  const server = spawn("bash", ["-c", text], { env, cwd, stdio: ["ignore", "ignore", "pipe"] });
  return new Promise((resolve, reject) => {
    let said = "";
    server.stderr.on("data", (data: Buffer) => {
      said += data.toString();
      if (said.includes("127.0.0.1:")) resolve(server);
    });
    server.on("exit", () => {
      reject(new Error(`${text}\n${said}`));
    });
  });
}

async function runProgram(block: Block, name: string, ports: Ports): Promise<number> {
  const file = `${folder}${name}-${String(block.line)}.mjs`;
  const { code } = await transform(programOf(block, ports), { loader: "ts", format: "esm", target: "es2022" });
  writeFileSync(file, code);
  try {
    const { stdout } = await run(process.execPath, [file], { timeout: 30_000 });
    return Number(/checks: (\d+)/.exec(stdout)?.[1]);
  } finally {
    rmSync(file);
  }
}

// All programs of a page at once: the compiler's start is what takes its time.
async function checkTypes(blocks: Block[], name: string, ports: Ports): Promise<void> {
  const programs = blocks.filter(({ kind }) => kind === "ts");
  if (programs.length === 0) return;
  const files = programs.map((block) => {
    const file = `${folder}${name}-${String(block.line)}.ts`;
    writeFileSync(file, programOf(block, ports));
    return file;
  });
  const project = `${folder}${name}.json`;
  const compilerOptions = {
    types: ["node"],
    rootDir: "/",
    noEmit: true,
    declaration: false,
    declarationMap: false,
    sourceMap: false,
    noUnusedLocals: false,
    noUncheckedIndexedAccess: false,
    skipLibCheck: true,
  };
  writeFileSync(project, JSON.stringify({ extends: "../../tsconfig.json", compilerOptions, include: [], files }));
  try {
    await run(process.execPath, [`${packageFolder}node_modules/typescript/bin/tsc`, "--project", project]);
  } catch (error) {
    throw new Error((error as { stdout: string }).stdout, { cause: error });
  } finally {
    for (const file of [...files, project]) rmSync(file);
  }
}

/** A page that provides `page.title` and takes its title from the topic `title`. Whether there is a browser. */
async function loadPage(origin: string, url: string): Promise<boolean> {
  if (!hasBrowser) return false;
  const browser = await launch();
  try {
    const page = await browser.newPage();
    const failures: unknown[] = [];
    page.on("pageerror", (error) => failures.push(error));
    const node = await connect(url);
    const provided = new Promise<void>((resolve) => {
      void node.subscribe("rpc.method.registered", () => {
        resolve();
      });
    });
    await node.call("rpc.ping");
    await page.goto(origin);
    await provided;
    await node.page.title();
    await node.publish("title", "told");
    await page.waitForFunction(() => document.title === "told", undefined, { timeout: 10_000 });
    await show(page, "documented", "told");
    await node.close();
    if (failures.length > 0) throw new Error(String(failures[0]));
    return true;
  } finally {
    await browser.close();
  }
}
