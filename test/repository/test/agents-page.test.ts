import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { moved } from "../../../scripts/agents-matrix.mjs";
import { agents, cellsOf, features, page, pageOf, pinOf, runs } from "../../../scripts/docs/agents.mjs";

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

it("npm run agents:matrix compares every cell of the page with what the tests record", () => {
  const text = readFileSync(page, "utf8");
  const before = cellsOf(text);
  for (const agent of agents) expect(moved(before, before, agent)).toEqual([]);
  const of = (table: string, agent: string) =>
    before.filter((cell) => cell.table === table && cell.agent === agent);
  for (const agent of agents) {
    expect(of("runs", agent).map(({ row }) => row)).toEqual(runs);
    expect(of("features", agent).map(({ row }) => row)).toEqual(features);
    expect(of("handoffs", agent).length).toBeGreaterThan(10);
  }
  // One row that says something else, one whose test failed, and one of another agent.
  const other = (agent: string, row: string) =>
    before.find((cell) => cell.agent === agent && cell.row === row);
  const [text1, cancel] = [other("pi", "text"), other("pi", "cancel")];
  const now = before
    .filter((cell) => cell !== cancel && cell !== other("qwen", "text"))
    .map((cell) => (cell === text1 ? { ...cell, note: "fails" } : cell));
  expect(moved(before, now, "pi")).toEqual([
    { row: "runs: text", before: "yes", now: "fails" },
    { row: "runs: cancel", before: "yes", now: "no test recorded it" },
  ]);
});

/**
 * The root manifest can't override what the adapter of Codex asks for: with any override, npm 11 fails to install some of
 * the workspaces, as the demo does. The lockfile therefore states the pinned version as the adapter's dependency. An
 * `npm install` that resolves the adapter again undoes that.
 */
it("the lockfile has the agents that are pinned, Codex behind its adapter too", () => {
  const { packages } = JSON.parse(
    readFileSync(new URL("../../../package-lock.json", import.meta.url), "utf8"),
  );
  const compared: string[] = [];
  for (const agent of agents) {
    const { dependencies, overrides = {} } = pinOf(agent);
    for (const [name, version] of Object.entries({ ...dependencies, ...overrides })) {
      const path = Object.keys(packages).find((key) => key.endsWith(`node_modules/${name}`));
      // Claude Code, for one, is too large to come with the tests.
      if (path === undefined) continue;
      expect(packages[path].version, `${name}: edit package-lock.json by hand`).toBe(version);
      compared.push(name);
    }
  }
  expect(compared).toContain("@openai/codex");
  const adapter = packages["node_modules/@agentclientprotocol/codex-acp"];
  expect(adapter.dependencies["@openai/codex"]).toBe(packages["node_modules/@openai/codex"].version);
});
