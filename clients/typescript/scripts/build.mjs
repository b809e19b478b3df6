// Builds dist: what tsc makes of src, and the same as one file for pages without a bundler.
import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { build } from "esbuild";

process.chdir(new URL("..", import.meta.url).pathname);
rmSync("dist", { recursive: true, force: true });
execFileSync("node_modules/.bin/tsc", { stdio: "inherit" });
await build({
  entryPoints: ["src/index.ts"],
  outfile: "dist/wirecall.min.js",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  sourcemap: true,
  logLevel: "warning",
});
