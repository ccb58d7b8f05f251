import type { Candidates, Probed } from "@ambit/core";
import type { RunRequest } from "@ambit/core/contract";
import type { Harness, SandboxBackend } from "@ambit/core/plugin";
import { runRequestSchema } from "@ambit/core/plugin";
import { harness, sandbox } from "@ambit/fakes/actors";
import { describe, expect, it } from "vitest";
import {
  type CallerRules,
  candidatesFor,
  inCallersProject,
  withoutSharedSession,
} from "../../src/admission/caller-rules.js";

const rules: CallerRules = { project: "p", permissionCeiling: [] };
const requested = (body: object): RunRequest => runRequestSchema.parse(body);

describe("a run of a caller with one project", () => {
  it.each([
    ["names none", {}],
    ["names an empty one", { projectId: "" }],
    ["names an empty one in its context", { runContext: { project: { id: "" } } }],
    ["names its own", { projectId: "p" }],
    ["names its own in its context", { runContext: { project: { id: "p" } } }],
  ])("is in that project where the request %s", (_what, body) => {
    expect(inCallersProject(requested(body), rules).projectId).toBe("p");
  });

  it.each([
    ["projectId", { projectId: "q" }],
    ["runContext.project.id", { runContext: { project: { id: "q" } } }],
    ["runContext.project.id", { projectId: "p", runContext: { project: { id: "q" } } }],
  ])("is refused for another project, named by %s", (path, body) => {
    expect(() => inCallersProject(requested(body), rules)).toThrow(
      `${path}: is not the project of this token`,
    );
  });
});

it("keeps no session that all tenants would share", () => {
  const shared = withoutSharedSession(requested({ sessionId: "s" }));
  expect(shared.request.sessionId).toBeUndefined();
  expect(shared.warnings).toMatchObject([{ path: "sessionId" }]);
  for (const body of [{ sessionId: "s", projectId: "p" }, {}]) {
    const request = requested(body);
    expect(withoutSharedSession(request)).toEqual({ request, warnings: [] });
  }
});

describe("the actors of a caller", () => {
  const named = <A extends object>(probed: Probed<A>, own: Partial<A>): Probed<A> => ({
    ...probed,
    actor: { ...probed.actor, ...own },
  });
  const all: Candidates = {
    sandboxes: ["local", "docker"].map((name) => named<SandboxBackend>(sandbox(), { name })),
    harnesses: ["codex", "pi"].map((id) => named<Harness>(harness(), { id })),
    executors: [],
    deliveries: [],
    toolSources: [],
    gateways: [],
  };
  it.each([
    ["all, where nothing is said", {}, ["local", "docker"], ["codex", "pi"]],
    ["the sandboxes it may use", { sandboxes: ["docker"] }, ["docker"], ["codex", "pi"]],
    ["the harnesses it may use", { harnesses: ["codex"] }, ["local", "docker"], ["codex"]],
    ["none, where none is listed", { sandboxes: [], harnesses: [] }, [], []],
  ])("are %s", (_what, own, sandboxes, harnesses) => {
    const left = candidatesFor(all, { ...rules, ...own });
    expect(left.sandboxes.map(({ actor }) => actor.name)).toEqual(sandboxes);
    expect(left.harnesses.map(({ actor }) => actor.id)).toEqual(harnesses);
  });
});
