import { boundaryOf, request as requestOf } from "@ambit/fakes/actors";
import { describe, expect, it } from "vitest";
import { domains, toolSpecSchema } from "../../src/contract/index.js";
import { defineExecutor, type ExecutorDefinition } from "../../src/plugin/index.js";

const execute = async () => ({ status: "completed", output: "done" }) as const;
const minimal = defineExecutor({ kind: "clock", site: "runner", execute });
const tool = toolSpecSchema.parse({ kind: "clock", name: "now" });
const request = requestOf({ customTools: [tool] });
const use = { request, tool };

describe("an executor with only kind, site and execute", () => {
  it.each([
    ["is named after its kind", minimal.name, "clock"],
    ["touches every domain", minimal.touches(use), domains],
    ["claims nothing", minimal.claims, []],
    ["has no gaps of its own", minimal.gaps(boundaryOf(request), use), []],
    ["has no issues", minimal.issues(use), []],
    ["prepares nothing", minimal.prepare, undefined],
    ["can't be changed", Object.isFrozen(minimal), true],
  ])("%s", (_what, actual, expected) => {
    expect(actual).toEqual(expected);
  });

  it("has no probe findings", async () => {
    await expect(minimal.probe(new AbortController().signal)).resolves.toEqual([]);
  });
});

it("uses its author's values instead of the defaults", async () => {
  const given: ExecutorDefinition = {
    kind: "clock",
    site: "runner",
    name: "watch",
    execute,
    claims: ["network.deny"],
    touches: () => ["network"],
    gaps: () => [{ capability: "network.deny", reason: "r", fix: "c" }],
    issues: () => [{ path: "timeoutMs", message: "not here" }],
    probe: async () => [{ capability: "network.deny", proven: true, how: "h" }],
    prepare: () => undefined,
  };
  expect(defineExecutor(given)).toEqual(given);
});
