import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { agents, features, page, pageOf, runs } from "../../../scripts/docs/agents.mjs";

/** Without what only the real agents can tell: the cells of the first two tables, and the rows of the last ones. */
function generatedOf(text: string): string {
  const [head = "", measured = "", files = ""] = text.split(/^(?=## Runs|## Files)/m);
  const firstCells = measured.replaceAll(/^(\|[^|]*\|).*$/gm, "$1");
  return `${head}${firstCells}${files.replaceAll(/^\| `.*\n/gm, "")}`;
}

it("docs/agents.md has its generator's text, rows and versions: node scripts/docs/agents.mjs", () => {
  const cells = Object.entries({ runs, features }).flatMap(([table, rows]) =>
    rows.flatMap((row) => agents.map((agent) => ({ table, row, agent, note: "" }))),
  );
  const files = agents.map((agent) => ({ table: "handoffs", agent, alone: "acts", held: "read" }));
  expect(generatedOf(readFileSync(page, "utf8"))).toBe(generatedOf(pageOf([...cells, ...files])));
});
