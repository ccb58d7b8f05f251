import { ModelFailed } from "@ambit/core/plugin";
import { startModelServer } from "@ambit/model-server";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { GeminiStage } from "../support/gemini-stage.js";
import { failureOf, requestOf, turnOf } from "../support/runs.js";

let stage: GeminiStage;
beforeEach(async () => {
  stage = await GeminiStage.open();
});
afterEach(() => stage.close());

describe("Gemini CLI, failing", () => {
  it.each([
    { status: 400, retryable: false },
    { status: 429, retryable: true },
    { status: 500, retryable: true },
    { status: 503, retryable: true },
  ])("reports its model's $status, at once", async ({ status, retryable }) => {
    const { agent, scope } = await stage.start();
    const { error } = await failureOf(agent, turnOf({ prompt: `[[http ${status}]]` }));
    expect(error).toBeInstanceOf(ModelFailed);
    expect(error).toMatchObject({ retryable });
    await scope.close();
  });

  it("reports a refused credential, which a second try wouldn't mend", async () => {
    const { agent, scope } = await stage.start({ request: stage.requestWith({}, "a-wrong-key") });
    const { error } = await failureOf(agent, turnOf());
    expect(error).toBeInstanceOf(ModelFailed);
    expect(error).toMatchObject({ retryable: false, message: expect.stringContaining("401") });
    expect(String(error)).not.toContain("a-wrong-key");
    await scope.close();
  });

  it("doesn't pass an empty answer off as a success", async () => {
    const silent = await startModelServer({ script: () => ({ kind: "message", usage: nothing }) });
    const { modelConnection } = requestOf(stage.requestWith());
    const endpoint = { baseUrl: silent.url };
    const request = { modelConnection: { ...modelConnection, endpoint } };
    const { agent, scope } = await stage.start({ request });
    const { error } = await failureOf(agent, turnOf());
    expect(error).toBeInstanceOf(ModelFailed);
    await scope.close();
    await silent.close();
  });
});

const nothing = { input: 0, cachedInput: 0, output: 0 };
