import { gateway, harness, sandbox } from "@ambit/fakes/actors";
import { describe, expect, it } from "vitest";
import { receiptOf } from "../../src/plan/index.js";
import type { ModelUse } from "../../src/plugin/index.js";
import { facts, full, gapsIn, planned } from "./planning.js";

const model: ModelUse = {
  protocol: "openai",
  endpoint: "https://api.example/v1",
  basePath: "/v1",
  credentials: { MODEL_KEY: "sk-secret" },
  headers: {},
  model: "m-1",
  auxiliaryModels: [],
};

/** An agent with a model, whose key it would otherwise hold, and whose host is on no list. */
const agent = harness({
  model,
  visible: ["MODEL_KEY"],
  hideable: [{ name: "MODEL_KEY", value: "sk-secret", hosts: ["api.example"] }],
  direct: [{ capability: "network.deny", reason: "its model lives elsewhere", fix: "load a gateway" }],
});
const sandboxes = [sandbox({ ...full, hides: () => true })];
const carrying = gateway({ claims: ["secrets.hidden"] });
const closed = { sandboxPermission: { network: "off", secrets: "hidden" } };

describe("a model gateway in the plan", () => {
  it("lets an agent reach its model with the network off and its key outside", () => {
    const plan = planned(closed, { sandboxes, harnesses: [agent], gateways: [carrying] });
    expect(gapsIn(plan)).toEqual([]);
    expect(plan).toMatchObject({ accepted: true, gateway: { use: model } });
    // The sandbox has no use for a key that doesn't come near it.
    expect(plan).toMatchObject({ hidden: [] });
  });

  it("without one, the agent's direct connection is a gap", () => {
    const plan = planned(closed, { sandboxes, harnesses: [agent] });
    expect(gapsIn(plan)).toEqual(["demo network.deny"]);
  });

  it("without one, a sandbox that can hide the key gets it", () => {
    const plan = planned({ sandboxPermission: { secrets: "hidden" } }, { sandboxes, harnesses: [agent] });
    expect(plan).toMatchObject({ accepted: true, hidden: [{ name: "MODEL_KEY" }] });
  });

  it("a gateway that doesn't support this model isn't used, and the gap gives the reason", () => {
    const issues = [{ path: "modelConnection.credentials", message: "holds no key that it can use" }];
    const rows = { sandboxes: [sandbox(full)], harnesses: [agent], gateways: [gateway({ issues })] };
    const plan = planned({ sandboxPermission: { secrets: "hidden" } }, rows);
    expect(gapsIn(plan)).toEqual(["demo secrets.hidden"]);
    expect(plan.accepted ? [] : plan.gaps[0]?.reason).toContain("holds no key that it can use");
  });

  it("one whose claim to hide keys isn't proven is a separate gap", () => {
    const unproven = gateway({ claims: ["secrets.hidden"], proven: [] });
    const plan = planned(closed, { sandboxes, harnesses: [agent], gateways: [unproven] });
    expect(gapsIn(plan)).toEqual(["model-route secrets.hidden"]);
  });

  it("is listed on the receipt as a mediated channel, with the model's host", () => {
    const plan = planned(closed, { sandboxes, harnesses: [agent], gateways: [carrying] });
    if (!plan.accepted) throw new Error("the plan is refused");
    const receipt = receiptOf(plan, facts);
    expect(receipt.actors).toContainEqual({
      kind: "gateway",
      name: "model-route",
      site: "runner",
      assurance: "mediated",
      touches: ["network", "secrets"],
      subjects: ["api.example"],
    });
    expect(receipt.credentials).toEqual([{ name: "MODEL_KEY", hosts: ["api.example"], by: "route" }]);
    expect(JSON.stringify(receipt)).not.toContain("sk-secret");
  });
});
