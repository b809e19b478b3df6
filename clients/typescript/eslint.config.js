import js from "@eslint/js";
import { defineConfig } from "eslint/config";
import typescript from "typescript-eslint";

export default defineConfig(
  { ignores: ["build", "dist"] },
  js.configs.recommended,
  {
    files: ["**/*.ts"],
    extends: [typescript.configs.strictTypeChecked, typescript.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { project: ["./tsconfig.json", "./tests/tsconfig.json"], tsconfigRootDir: import.meta.dirname },
    },
  },
  {
    // What comes from a server is anything, and a test looks into it.
    files: ["tests/**/*.ts"],
    rules: {
      "@typescript-eslint/no-unsafe-argument": "off",
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-member-access": "off",
      "@typescript-eslint/no-unsafe-return": "off",
    },
  },
  {
    files: ["**/*.{js,mjs}"],
    languageOptions: { globals: { console: "readonly", process: "readonly", URL: "readonly" } },
  },
);
