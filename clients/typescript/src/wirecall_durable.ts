// The client together with what it has of a durable store: dist/wirecall-durable.min.js, for pages without a bundler.
export * from "./durable.js";
export * from "./index.js";
