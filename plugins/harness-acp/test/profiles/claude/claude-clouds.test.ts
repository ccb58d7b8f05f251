import { describe, expect, it } from "vitest";
import { AcpHarness } from "../../../src/index.js";
import { claude } from "../../../src/profiles/claude.js";
import { credential, here } from "../../support/harnesses.js";
import { requestOf } from "../../support/runs.js";

const harness = new AcpHarness(claude, { ...here, command: process.execPath });
const places = { home: "/h", workspace: "/w", fresh: "/h/fresh" };
const prepared = (request: ReturnType<typeof requestOf>, endpoint: object) =>
  claude.prepare({ ...places, request, model: "m", endpoint, servers: [], searchPath: "/usr/bin" })
    .environment;
const route = { baseUrl: "http://127.0.0.1:1", key: "of-the-run" };

describe("Claude Code in a cloud", () => {
  const bedrock = requestOf({
    model: "eu.anthropic.claude-x-v1:0",
    modelConnection: {
      provider: "anthropic",
      deployment: "bedrock",
      endpoint: { region: "eu-west-1" },
      credentials: [credential("AWS_ACCESS_KEY_ID"), credential("AWS_SECRET_ACCESS_KEY")],
    },
  });
  const vertex = requestOf({
    model: "claude-x",
    modelConnection: {
      deployment: "vertex_ai",
      environment: { ANTHROPIC_VERTEX_PROJECT_ID: "p", CLOUD_ML_REGION: "europe-west1" },
      credentials: [credential("GOOGLE_APPLICATION_CREDENTIALS")],
    },
  });

  it("is described for a model gateway, which signs", () => {
    expect(harness.model(bedrock)).toEqual({
      protocol: "bedrock",
      basePath: "",
      endpoint: "https://bedrock-runtime.eu-west-1.amazonaws.com",
      credentials: { AWS_ACCESS_KEY_ID: "v", AWS_SECRET_ACCESS_KEY: "v" },
      headers: {},
      region: "eu-west-1",
      model: "eu.anthropic.claude-x-v1:0",
      auxiliaryModels: ["*anthropic.claude-*haiku*"],
    });
    expect(harness.model(vertex)).toMatchObject({
      protocol: "vertex",
      basePath: "/v1",
      endpoint: "https://europe-west1-aiplatform.googleapis.com/v1",
      credentials: { GOOGLE_APPLICATION_CREDENTIALS: "v" },
    });
    for (const request of [bedrock, vertex]) expect(harness.issues(request, "host", true)).toEqual([]);
  });

  it("signs nothing itself with a route, and presents the route's key", () => {
    expect(prepared(bedrock, route)).toMatchObject({
      CLAUDE_CODE_USE_BEDROCK: "1",
      CLAUDE_CODE_SKIP_BEDROCK_AUTH: "1",
      ANTHROPIC_BEDROCK_BASE_URL: route.baseUrl,
      AWS_REGION: "eu-west-1",
      ANTHROPIC_CUSTOM_HEADERS: "x-api-key: of-the-run",
    });
    expect(prepared(vertex, route)).toMatchObject({
      CLAUDE_CODE_USE_VERTEX: "1",
      CLAUDE_CODE_SKIP_VERTEX_AUTH: "1",
      ANTHROPIC_VERTEX_BASE_URL: route.baseUrl,
      CLOUD_ML_REGION: "europe-west1",
    });
  });

  it("signs itself without a route", () => {
    expect(prepared(bedrock, {})).toMatchObject({ CLAUDE_CODE_USE_BEDROCK: "1" });
    expect(prepared(bedrock, {})).not.toHaveProperty("CLAUDE_CODE_SKIP_BEDROCK_AUTH");
    expect(harness.visibleCredentials(bedrock)).toEqual(["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]);
  });

  it("uses Anthropic's own API for another deployment", () => {
    const request = requestOf({
      modelConnection: { deployment: "direct", credentials: [credential("ANTHROPIC_API_KEY")] },
    });
    expect(harness.model(request)).toMatchObject({ protocol: "anthropic" });
    expect(prepared(request, route)).toMatchObject({ ANTHROPIC_BASE_URL: route.baseUrl });
  });
});
