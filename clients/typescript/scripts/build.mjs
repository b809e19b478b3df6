// Builds dist: what tsc makes of src, and the same as one file for pages without a bundler, with and without
// what it has of a durable store.
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { build } from "esbuild";

process.chdir(new URL("..", import.meta.url).pathname);
rmSync("dist", { recursive: true, force: true });
execFileSync("node_modules/.bin/tsc", { stdio: "inherit" });
await build({
  entryPoints: { "wirecall.min": "src/index.ts", "wirecall-durable.min": "src/wirecall_durable.ts" },
  outdir: "dist",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  sourcemap: true,
  logLevel: "warning",
});
