import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["tests/*_test.ts"],
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
});
