import {
  boundaryOf,
  candidates,
  delivery,
  executor,
  harness,
  request,
  sandbox,
  toolSource,
} from "@ambit/fakes/actors";
import { describe, expect, test } from "vitest";
import { capabilities, receiptSchema } from "../../src/contract/index.js";
import { boundedRequest, planRun, type RunFacts, receiptOf } from "../../src/plan/index.js";

describe("receiptOf", () => {
  const facts: RunFacts = {
    confinement: "confined",
    evidence: { uid: 1 },
    visibleCredentials: ["KEY"],
    decisions: { allowed: 1, refused: 2 },
    session: { id: "s", history: "new" },
  };
  const full = { name: "full", claims: capabilities };

  function receiptFor(body: object, rows: Parameters<typeof candidates>[0]) {
    const asked = request(body);
    const plan = planRun(boundedRequest(asked, boundaryOf(asked)), candidates(rows));
    if (!plan.accepted) throw new Error(JSON.stringify(plan.gaps));
    const receipt = receiptOf(plan, facts);
    expect(receiptSchema.safeParse(receipt).error).toBeUndefined();
    return receipt;
  }

  test("lists each actor's assurance, and the source of each guarantee", () => {
    const claims = ["network.allow-host", "network.deny"] as const;
    const receipt = receiptFor(
      {
        sandboxPermission: { network: { allowlist: ["a.example"] } },
        customTools: [
          { name: "one", callRef: "r" },
          { name: "two", callRef: "r" },
          { name: "pick", kind: "client" },
          { name: "run", kind: "code" },
        ],
      },
      {
        sandboxes: [sandbox(full)],
        executors: [
          executor({ touches: ["network"], claims }),
          executor({ kind: "client", site: "caller" }),
          executor({ kind: "code", site: "sandbox", touches: ["network"] }),
          executor({ kind: "unused" }),
        ],
      },
    );
    expect(receipt).toMatchObject({ ...facts, sandbox: "full", enforcement: "strict", accepted: [] });
    expect(
      receipt.actors.map(({ kind, name, assurance, subjects }) => [kind, name, assurance, subjects]),
    ).toEqual([
      ["sandbox", "full", "guaranteed", undefined],
      ["harness", "demo", "inherited", undefined],
      ["delivery", "mcp-http", "mediated", undefined],
      ["executor", "callback", "guaranteed", ["one", "two"]],
      ["executor", "client", "outside", ["pick"]],
      ["executor", "code", "inherited", ["run"]],
    ]);
    expect(receipt.guarantees.map(({ capability, by }) => `${by} ${capability}`)).toEqual([
      "full network.allow-host",
      "full process.contained",
      "full environment.named-only",
      "callback network.allow-host",
    ]);
  });

  test("an accepted gap is no guarantee, whatever its actor proves elsewhere", () => {
    const states = [{ capability: "network.allow-host", reason: "not listed", fix: "list it" }] as const;
    const receipt = receiptFor(
      {
        sandboxPermission: { network: { allowlist: ["10.0.0.0/8"] }, enforcement: "best_effort" },
        customTools: [{ name: "one", callRef: "r" }],
        mcpServers: [{ name: "docs", connection: { type: "http", url: "https://d.example" } }],
      },
      {
        sandboxes: [sandbox(full)],
        executors: [executor({ touches: ["network"], claims: ["network.allow-cidr"], states })],
        toolSources: [toolSource({ touches: ["network"], claims: ["network.allow-cidr"] })],
      },
    );
    const requiredBy = "sandboxPermission.network.allowlist lists addresses";
    expect(receipt.accepted).toEqual([{ actor: "callback", ...states[0], subject: "one", requiredBy }]);
    expect(receipt.actors.find(({ name }) => name === "callback")?.assurance).toBe("outside");
    expect(receipt.guarantees.map(({ by }) => by)).not.toContain("callback");
    expect(receipt.guarantees.map(({ by }) => by)).toContain("mcp-http-client");
  });

  test("what an executor on the runner claims beyond the network is its author's statement", () => {
    const claims = ["network.allow-host", "filesystem.workspace-only", "filesystem.host-hidden"] as const;
    const receipt = receiptFor(
      {
        sandboxPermission: { network: { allowlist: ["a.example"] }, filesystem: "workspace" },
        customTools: [{ name: "one", callRef: "r" }],
      },
      { sandboxes: [sandbox(full)], executors: [executor({ touches: ["network", "filesystem"], claims })] },
    );
    const basisOf = (actor: string) =>
      Object.fromEntries(
        receipt.guarantees.filter(({ by }) => by === actor).map((one) => [one.capability, one.basis]),
      );
    expect(basisOf("callback")).toEqual({
      "network.allow-host": "attempted",
      "filesystem.workspace-only": "stated",
      "filesystem.host-hidden": "stated",
    });
    expect(new Set(Object.values(basisOf("full")))).toEqual(new Set(["attempted"]));
  });

  test("a delivery's own guarantee is listed", () => {
    const receipt = receiptFor(
      { sandboxPermission: { secrets: "hidden" }, customTools: [{ name: "one", callRef: "r" }] },
      {
        sandboxes: [sandbox(full)],
        executors: [executor()],
        harnesses: [harness()],
        deliveries: [delivery({ touches: ["network", "secrets"], claims: ["secrets.hidden"] })],
      },
    );
    expect(receipt.guarantees).toContainEqual(
      expect.objectContaining({ capability: "secrets.hidden", by: "mcp-http" }),
    );
  });
});
