// What a page has to load: the whole client as one file, minified and gzipped, within 12 KB.
import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const bytesMax = 12_000;
const file = new URL("../dist/wirecall.min.js", import.meta.url);
const bytes = gzipSync(readFileSync(file), { level: 9 }).length;
console.log(`dist/wirecall.min.js: ${bytes} bytes gzipped, of ${bytesMax}`);
if (bytes > bytesMax) process.exit(1);
