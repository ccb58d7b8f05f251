import type { PublishedTool } from "@ambit/core/plugin";
import { expect, it } from "vitest";
import { ToolList } from "../src/tool-list.js";

const tool = (name: string, description = name): PublishedTool => ({
  name,
  description,
  inputSchema: { type: "object" },
});

function listOf(...tools: PublishedTool[]) {
  const warnings: string[] = [];
  const note = (_fields: object, message?: string) => void warnings.push(message ?? "");
  const log = { debug: () => {}, info: () => {}, error: () => {}, warn: note };
  const list = new ToolList("docs", log);
  list.tools = tools;
  const changes: (readonly PublishedTool[])[] = [];
  list.watch((changed) => changes.push(changed));
  return { list, changes, warnings };
}

it("a list that changed is read once for all news of it that come meanwhile, and once more", async () => {
  const { list, changes } = listOf(tool("old"));
  const reading = Promise.withResolvers<readonly PublishedTool[]>();
  let reads = 0;
  const read = () => {
    reads += 1;
    return reads === 1 ? reading.promise : Promise.resolve([tool("new", "another description")]);
  };
  for (let news = 0; news < 5; news += 1) list.changed(read);
  reading.resolve([tool("new")]);
  await list.current();
  expect(reads).toBe(2);
  expect(changes).toEqual([[tool("new")], [tool("new", "another description")]]);
  expect([list.find("old"), list.find("new")?.description]).toEqual([undefined, "another description"]);
});

it("a list that is as before, or can't be read, changes nothing", async () => {
  const { list, changes, warnings } = listOf(tool("old"));
  list.changed(async () => [tool("old")]);
  await list.current();
  list.changed(() => Promise.reject(new Error("it is down")));
  await list.current();
  expect(changes).toEqual([]);
  expect(list.tools).toEqual([tool("old")]);
  expect(warnings).toEqual(["the changed tools of an MCP server could not be listed"]);
});

it("changes a hundred times, and then no more", async () => {
  const { list, changes, warnings } = listOf();
  for (let change = 1; change <= 105; change += 1) {
    list.changed(async () => [tool(`tool-${change}`)]);
    await list.current();
  }
  expect(changes).toHaveLength(100);
  expect(list.tools).toEqual([tool("tool-100")]);
  expect(warnings).toEqual(["an MCP server changed its tools more than 100 times"]);
});
