import { expect, it } from "vitest";
import { AmbitClient } from "../src/index.js";

it("reads a list to its end, also beyond a page that is shorter than its limit", async () => {
  const queries: string[] = [];
  const pages: Record<string, object[]> = {
    "": [{ runId: "c" }, { runId: "b", projectId: "p" }],
    "p/b": [{ runId: "a" }],
    a: [],
  };
  const client = new AmbitClient({
    fetch: async (input) => {
      const { searchParams } = new URL(String(input));
      queries.push(String(searchParams));
      return Response.json({ runs: pages[searchParams.get("after") ?? ""] });
    },
  });
  const runs = await Array.fromAsync(client.eachRun({ state: "ended" }));
  expect(runs.map(({ runId }) => runId)).toEqual(["c", "b", "a"]);
  expect(queries).toEqual([
    "limit=1000&state=ended",
    "limit=1000&state=ended&after=p%2Fb",
    "limit=1000&state=ended&after=a",
  ]);
});
