import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/*_test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});
