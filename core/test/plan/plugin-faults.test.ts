import { boundaryOf, candidates, executor, harness, request, sandbox, toolSource } from "@ambit/fakes/actors";
import { describe, expect, test } from "vitest";
import { PluginBrokeContract } from "../../src/errors.js";
import { boundedRequest, type Candidates, planRun } from "../../src/plan/index.js";
import { full, http, off, tool } from "./planning.js";

const throws = () => {
  throw new TypeError("Cannot read properties of undefined (reading 'endpoint')");
};
const body = {
  sandboxPermission: { ...off, secrets: "hidden" },
  customTools: [tool],
  mcpServers: [http],
};
const whole = {
  sandboxes: [sandbox({ ...full, name: "boxes", hides: () => true })],
  harnesses: [harness({ id: "agent", hideable: [{ name: "KEY", value: "v", hosts: ["a.test"] }] })],
  executors: [executor({ name: "posts", kind: "callback" })],
  toolSources: [toolSource({ name: "servers", connection: "http" })],
};
const plan = (changes: Partial<Candidates>) => {
  const asked = request(body);
  return planRun(boundedRequest(asked, boundaryOf(asked)), candidates({ ...whole, ...changes }));
};

describe("an error that a plugin throws during planning names the plugin and the method", () => {
  const { sandboxes, harnesses, executors, toolSources } = whole;
  const broken = <A extends object>([one]: readonly { readonly actor: A }[], method: string) =>
    [{ ...one, actor: { ...one?.actor, [method]: throws } }] as never;
  test.each<[string, string, Partial<Candidates>]>([
    ["boxes", "gaps", { sandboxes: broken(sandboxes, "gaps") }],
    ["boxes", "hides", { sandboxes: broken(sandboxes, "hides") }],
    ["agent", "gaps", { harnesses: broken(harnesses, "gaps") }],
    ["agent", "issues", { harnesses: broken(harnesses, "issues") }],
    ["agent", "visibleCredentials", { harnesses: broken(harnesses, "visibleCredentials") }],
    ["posts", "gaps", { executors: broken(executors, "gaps") }],
    ["posts", "touches", { executors: broken(executors, "touches") }],
    ["posts", "issues", { executors: broken(executors, "issues") }],
    ["servers", "gaps", { toolSources: broken(toolSources, "gaps") }],
    ["servers", "issues", { toolSources: broken(toolSources, "issues") }],
  ])("%s: %s", (name, method, changes) => {
    expect(() => plan(changes)).toThrow(PluginBrokeContract);
    expect(() => plan(changes)).toThrow(`'${name}' threw in ${method}()`);
  });
});

test("gaps isn't called for a part of the request with an issue", () => {
  const issue = { path: "callRef", message: "is required" };
  const [one] = whole.executors;
  if (one === undefined) throw new Error("no executor");
  const actor = { ...one.actor, issues: () => [issue], gaps: throws };
  const refused = plan({ executors: [{ ...one, actor }] });
  expect(refused).toMatchObject({
    accepted: false,
    issues: [{ path: "customTools[0].callRef", message: "is required" }],
  });
});
