// The package as it would be published: what is in it, and that a program and a compiler find it.
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const run = promisify(execFile);
const packageFolder = fileURLToPath(new URL("..", import.meta.url));
let folder: string;
let installed: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "wirecall-package-"));
  // What npm packs, by its rules: the fields `files`, and what is always there.
  const { files } = JSON.parse(readFileSync(join(packageFolder, "package.json"), "utf8")) as { files: string[] };
  installed = join(folder, "node_modules", "wirecall");
  mkdirSync(installed, { recursive: true });
  await run("cp", ["-r", ...["package.json", ...files].map((name) => join(packageFolder, name)), installed]);
}, 60_000);
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe("the package", () => {
  it("has nothing that a program needs beside it, but ws for Node without WebSocket", () => {
    const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as Record<string, object>;
    expect(manifest).toMatchObject({
      name: "wirecall",
      license: "MIT",
      type: "module",
      peerDependencies: { ws: "^8.0.0" },
      peerDependenciesMeta: { ws: { optional: true } },
    });
    expect(manifest.dependencies).toBeUndefined();
    expect(existsSync(join(installed, "LICENSE"))).toBe(true);
    expect(readFileSync(join(packageFolder, "package-lock.json"), "utf8")).not.toContain('"resolved"');
  });

  it("names files that are there, and every script has types and a map to a source", () => {
    const { exports, types, main } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as {
      exports: Record<string, string | { types: string; default: string }>;
      types: string;
      main: string;
    };
    for (const target of [...Object.values(exports), types, main]) {
      for (const file of typeof target === "string" ? [target] : Object.values(target)) {
        expect(existsSync(join(installed, file)), file).toBe(true);
      }
    }
    const scripts = readdirSync(join(installed, "dist")).filter((name) => name.endsWith(".js"));
    expect(scripts).toContain("index.js");
    for (const script of scripts) {
      const file = join(installed, "dist", script);
      const map = JSON.parse(readFileSync(`${file}.map`, "utf8")) as { sources: string[] };
      expect(readFileSync(file, "utf8")).toContain(`//# sourceMappingURL=${script}.map`);
      for (const source of map.sources) expect(existsSync(resolve(dirname(file), source)), source).toBe(true);
      if (!script.endsWith(".min.js")) expect(existsSync(file.replace(/\.js$/, ".d.ts")), script).toBe(true);
    }
  });

  it("is found by a program, and imports nothing but itself", async () => {
    const names = ["ErrorCode", "RpcError", "Stream", "bytesOf", "connect"];
    for (const from of ["wirecall", "wirecall/wirecall.min.js"]) {
      const program = join(folder, "program.mjs");
      writeFileSync(program, `console.log(Object.keys(await import(${JSON.stringify(from)})).sort().join());`);
      expect((await run(process.execPath, [program])).stdout.trim()).toBe(names.join());
    }
    for (const script of readdirSync(join(installed, "dist")).filter((name) => name.endsWith(".js"))) {
      const text = readFileSync(join(installed, "dist", script), "utf8");
      for (const [, from] of text.matchAll(/^(?:import|export)\b.*\bfrom "([^"]+)";$/gm)) expect(from).toMatch(/^\.\//);
    }
  });

  it("says what is missing where there is no WebSocket", async () => {
    const program = join(folder, "no_socket.mjs");
    writeFileSync(
      program,
      `delete globalThis.WebSocket;
       const { connect } = await import("wirecall");
       await connect("ws://127.0.0.1:1").catch((error) => console.log(String(error)));`,
    );
    const { stdout } = await run(process.execPath, [program]);
    expect(stdout).toContain("TypeError: this engine has no WebSocket: take Node 22 or later, or npm install ws");
  });

  it("is found by a compiler, in every way of resolving modules", async () => {
    writeFileSync(
      join(folder, "program.ts"),
      `import { connect, type Client } from "wirecall";
       interface Api { sum(a: number, b: number): number }
       const c: Client<Api> = await connect<Api>("ws://127.0.0.1:8545");
       export const five: number = await c.sum(2, 3);`,
    );
    writeFileSync(join(folder, "package.json"), '{"type":"module"}');
    for (const module of ["NodeNext", "ESNext"]) {
      const words = ["--strict", "--noEmit", "--target", "ES2022", "--lib", "ES2022,DOM", "--module", module];
      const resolution = ["--moduleResolution", module === "ESNext" ? "Bundler" : "NodeNext"];
      const tsc = join(packageFolder, "node_modules/typescript/bin/tsc");
      const compiled = run(process.execPath, [tsc, ...words, ...resolution, "program.ts"], {
        cwd: folder,
      });
      await compiled.catch((error: unknown) => {
        throw new Error((error as { stdout: string }).stdout, { cause: error });
      });
    }
  });
});
