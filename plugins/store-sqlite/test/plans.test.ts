import { DatabaseSync } from "node:sqlite";
import type { Store } from "@ambit/durable/store";
import { type Database, type Statement, sqlStore } from "@ambit/sql-store";
import { migrationsFrom } from "@ambit/sql-store/schema";
import { expect, it } from "vitest";

const page = { project: "p", limit: 100 };

it.each<readonly [string, (store: Store) => Promise<unknown>]>([
  ["reading a log from some event on", (store) => store.read("r", 99_000, 65_536)],
  ["a project's runs", (store) => store.list(page)],
  ["a project's ended runs", (store) => store.list({ ...page, state: "ended" })],
  ["the next page of a project's runs", (store) => store.list({ ...page, after: "r" })],
  ...(["completed", "failed"] as const).flatMap((outcome): [string, (store: Store) => Promise<unknown>][] => [
    [`all runs that ${outcome}`, (store) => store.list({ limit: 100, outcome })],
    [`a project's runs that ${outcome}`, (store) => store.list({ ...page, outcome })],
    [`the next page of runs that ${outcome}`, (store) => store.list({ limit: 100, outcome, after: "r" })],
  ]),
  ["runs that ask", (store) => store.list({ limit: 100, asking: true })],
  ["all runs of one agent", (store) => store.list({ limit: 100, harness: "demo" })],
  ["a project's runs of one agent", (store) => store.list({ ...page, harness: "demo" })],
  ["all runs in one sandbox", (store) => store.list({ limit: 100, sandbox: "local" })],
  ["a project's runs in one sandbox", (store) => store.list({ ...page, sandbox: "local", after: "r" })],
  ["the next page of all runs", (store) => store.list({ limit: 100, after: "r" })],
  ["the next page of a project's questions", (store) => store.interactions({ ...page, after: "i" })],
  ["a project's open questions", (store) => store.interactions({ ...page, state: "open" })],
  ["the next page of a project's messages", (store) => store.deliveries({ ...page, after: "d" })],
  ["a project's failed messages", (store) => store.deliveries({ ...page, state: "failed" })],
])("finds %s by an index, in its order", async (what, ask) => {
  const file = new DatabaseSync(":memory:");
  for (const { text } of migrationsFrom(0)) file.exec(text);
  const asked: Statement[] = [];
  const database: Database = {
    now: "1",
    lock: "",
    insertsInWith: false,
    run: async (statements) => {
      asked.push(...statements);
      return statements.map(() => []);
    },
    close: async () => {},
  };
  await ask(sqlStore(database));
  const plan = asked.flatMap(({ text, values = [] }) => {
    const named = Object.fromEntries(values.map((value, index) => [`$${index + 1}`, value]));
    const steps = file.prepare(`EXPLAIN QUERY PLAN ${text}`).all(named);
    return steps.map(({ detail }) => String(detail));
  });
  file.close();
  const steps = plan.join("\n");
  expect(steps).toMatch(/^SEARCH ambit_/m);
  // Each row that is skipped or sorted costs as much as one that is wanted.
  if (what === "runs that ask") expect(steps).toContain("(id=?)");
  else if (what.startsWith("reading")) expect(steps).toContain("(run_id=? AND first_event>?)");
  else expect(steps).not.toMatch(/^SCAN ambit_|TEMP B-TREE/m);
});
