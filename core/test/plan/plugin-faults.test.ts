import {
  boundaryOf,
  candidates,
  delivery,
  executor,
  gateway,
  harness,
  request,
  sandbox,
  toolSource,
} from "@ambit/fakes/actors";
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

describe("what a plugin returns during planning is checked, whatever its types say", () => {
  const gap = { capability: "network.deny", reason: "it connects", fix: "remove it" };
  const use = {
    protocol: "anthropic",
    endpoint: "https://api.anthropic.com",
    basePath: "",
    credentials: {},
    headers: {},
    model: "m",
    auxiliaryModels: [],
  };
  const kinds = {
    sandboxes: whole.sandboxes,
    harnesses: whole.harnesses,
    executors: whole.executors,
    toolSources: whole.toolSources,
    gateways: [gateway({ name: "route" })],
    deliveries: [delivery({ name: "publishes" })],
  };
  const returning = (kind: keyof typeof kinds, method: string, returned: unknown): Partial<Candidates> => {
    const [one] = kinds[kind];
    const changed = [{ ...one, actor: { ...one?.actor, [method]: () => returned } }];
    return { ...kinds, [kind]: changed };
  };

  test.each<[kind: keyof typeof kinds, method: string, returned: unknown, problem: string]>([
    ["executors", "touches", ["Network"], 'did you mean "network"?'],
    ["executors", "touches", undefined, "nothing from touches()"],
    ["executors", "touches", "network", "must be a list"],
    [
      "executors",
      "gaps",
      [{ ...gap, capability: undefined, capabilty: "network.deny" }],
      "[0].capability must be one of",
    ],
    ["executors", "gaps", [{}], "[0].reason is required: a string"],
    ["executors", "gaps", [{ ...gap, fix: "" }], "[0].fix must not be empty"],
    ["executors", "gaps", Promise.resolve([]), "returned a promise from gaps()"],
    ["executors", "issues", {}, "must be a list"],
    ["executors", "issues", [{ path: "callRef" }], "[0].message is required"],
    ["toolSources", "touches", [null], "[0] must be one of"],
    ["toolSources", "gaps", null, "must be a list, not null"],
    ["toolSources", "issues", ["wrong"], "[0] must be an object"],
    ["sandboxes", "gaps", [{ ...gap, capability: "network.Deny" }], 'did you mean "network.deny"?'],
    ["sandboxes", "gaps", undefined, "nothing from gaps()"],
    ["sandboxes", "hides", "yes", "must be true, or an object"],
    ["sandboxes", "hides", undefined, "nothing from hides()"],
    ["sandboxes", "hides", { reason: "no" }, "fix is required"],
    ["sandboxes", "touches", ["disk"], "[0] must be one of"],
    ["harnesses", "touches", 7, "must be a list"],
    ["harnesses", "gaps", [[]], "[0] must be an object"],
    ["harnesses", "issues", undefined, "nothing from issues()"],
    ["harnesses", "directModelGaps", undefined, "nothing from directModelGaps()"],
    ["harnesses", "visibleCredentials", { KEY: true }, "must be a list"],
    [
      "harnesses",
      "hideableCredentials",
      [{ name: "KEY", value: 1, hosts: [] }],
      "[0].value must be a string",
    ],
    ["harnesses", "model", { ...use, endpoint: "nowhere" }, "endpoint"],
    ["deliveries", "gaps", undefined, "nothing from gaps()"],
    ["deliveries", "touches", ["secret"], 'did you mean "secrets"?'],
  ])("%s: %s", (kind, method, returned, problem) => {
    expect(() => plan(kinds)).not.toThrow();
    expect(() => plan(returning(kind, method, returned))).toThrow(PluginBrokeContract);
    expect(() => plan(returning(kind, method, returned))).toThrow(problem);
  });

  test.each<[method: string, returned: unknown]>([
    ["issues", undefined],
    ["gaps", [{}]],
    ["touches", ["net"]],
  ])("a gateway's %s", (method, returned) => {
    const routed = returning("gateways", method, returned);
    const [agent] = whole.harnesses;
    const harnesses = [{ ...agent, actor: { ...agent?.actor, model: () => use } }] as never;
    expect(() => plan({ ...kinds, harnesses })).not.toThrow();
    expect(() => plan({ ...routed, harnesses })).toThrow(`${method}()`);
  });

  test("a promise that rejects later ends nothing", async () => {
    const [one] = whole.executors;
    if (one === undefined) throw new Error("no executor");
    const gaps = () => Promise.reject(new Error("late")) as never;
    expect(() => plan({ executors: [{ ...one, actor: { ...one.actor, gaps } }] })).toThrow("a promise");
    await new Promise((resolve) => setImmediate(resolve));
  });

  test("a text that quotes a large request is cut, and refuses nothing", () => {
    const message = "x".repeat(1_000_000);
    const refused = plan(returning("executors", "issues", [{ path: "callRef", message }]));
    expect(refused.accepted ? [] : refused.issues.map((one) => one.message.length)).toEqual([2_002]);
  });
});
