import { expect, it } from "vitest";
import { z } from "zod";
import { allOf } from "../../src/cli/pages.js";

const pageSchema = z.object({ rows: z.array(z.string()) });

it("reads a server's list to its end, also beyond a page that is shorter than asked for", async () => {
  const asked: string[] = [];
  const pages: Record<string, string[]> = { "": ["c", "b"], b: ["a"], a: [] };
  const client = {
    json: async (_: string, path: string) => {
      asked.push(path);
      return { rows: pages[new URLSearchParams(path.split("?")[1]).get("after") ?? ""] };
    },
  };
  const rows = await allOf(client, {
    path: "/rows",
    filter: { state: "failed", runId: undefined },
    rowsOf: (body) => pageSchema.parse(body).rows,
    idOf: (row) => row,
  });
  expect(rows).toEqual(["c", "b", "a"]);
  expect(asked).toEqual([
    "/rows?limit=1000&state=failed",
    "/rows?limit=1000&state=failed&after=b",
    "/rows?limit=1000&state=failed&after=a",
  ]);
});
