// Pages do what they show.
import { expect, it } from "vitest";
import { runPage } from "./documents.js";
import { hasBrowser } from "./page_server.js";

const project = new URL("../../../", import.meta.url);

it.each([
  ["docs/typescript.md", "", { programs: 12, checks: 42, pages: 1, commands: 2 }],
  ["README.md", "## In TypeScript", { programs: 1, checks: 2, pages: 0, commands: 1 }],
  ["clients/typescript/README.md", "", { programs: 1, checks: 1, pages: 0, commands: 1 }],
])(
  "what %s shows %s",
  async (page, section, least) => {
    const outcome = await runPage(new URL(page, project), section);
    expect(outcome.programs).toBeGreaterThanOrEqual(least.programs);
    expect(outcome.checks).toBeGreaterThanOrEqual(least.checks);
    expect(outcome.pages).toBe(hasBrowser ? least.pages : 0);
    expect(outcome.commands).toBeGreaterThanOrEqual(least.commands);
  },
  120_000,
);
