import { gateway, harness, sandbox } from "@ambit/fakes/actors";
import { describe, expect, it } from "vitest";
import type { ModelUse } from "../../src/plugin/index.js";
import { full, planned } from "./planning.js";

const sandboxes = [sandbox(full)];
const issuesIn = (plan: ReturnType<typeof planned>) =>
  plan.accepted ? [] : plan.issues.map(({ path }) => path);
const model: ModelUse = {
  protocol: "openai",
  endpoint: "https://api.example/v1",
  basePath: "/v1",
  credentials: {},
  headers: { "X-Key": "secret-1" },
  model: "m-1",
  auxiliaryModels: [],
};

describe("a credential of the request is delivered, or the run is refused", () => {
  const variable = {
    sandboxCredentials: [{ binding: { kind: "environment", name: "TOKEN" }, value: "secret-1" }],
  };
  const header = { modelConnection: { gatewayCredentials: { header: "X-Key", value: "secret-1" } } };
  const login = {
    modelConnection: {
      subscription: { id: "a", slug: "b", provider: "chatgpt", version: 1, generation: 1, login: {} },
    },
  };

  it("as a variable, if the agent's harness says that it passes it on", () => {
    expect(issuesIn(planned(variable, { sandboxes }))).toEqual(["sandboxCredentials[0]"]);
    expect(planned(variable, { sandboxes, harnesses: [harness({ visible: ["TOKEN"] })] })).toMatchObject({
      accepted: true,
    });
  });

  it("as a variable, which hidden secrets don't allow", () => {
    const hidden = { ...variable, sandboxPermission: { secrets: "hidden" } };
    expect(planned(hidden, { sandboxes, harnesses: [harness({ visible: ["TOKEN"] })] })).toMatchObject({
      accepted: false,
      gaps: [{ capability: "secrets.hidden", reason: expect.stringContaining("TOKEN") }],
    });
  });

  it("as a header, if a model gateway adds it", () => {
    const path = "modelConnection.gatewayCredentials";
    expect(issuesIn(planned(header, { sandboxes, harnesses: [harness({ model })] }))).toEqual([path]);
    const gateways = [gateway({})];
    expect(planned(header, { sandboxes, harnesses: [harness({ model })], gateways }).accepted).toBe(true);
    // A harness that doesn't know the field.
    const unaware = harness({ model: { ...model, headers: {} } });
    expect(issuesIn(planned(header, { sandboxes, harnesses: [unaware], gateways }))).toEqual([path]);
  });

  it("as a login, if the agent's harness says that it passes it on", () => {
    const path = "modelConnection.subscription";
    expect(issuesIn(planned(login, { sandboxes }))).toEqual([path]);
    const harnesses = [harness({ visible: [path] })];
    expect(planned(login, { sandboxes, harnesses }).accepted).toBe(true);
    const hidden = { ...login, sandboxPermission: { secrets: "hidden" } };
    expect(planned(hidden, { sandboxes, harnesses })).toMatchObject({
      accepted: false,
      gaps: [{ capability: "secrets.hidden", reason: expect.stringContaining(path) }],
    });
  });
});
