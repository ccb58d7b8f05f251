import type { RunRequest } from "@ambit/core/plugin";
import type { ModelAccess, ModelEndpoint } from "./profile.js";
import { regionOf } from "./providers.js";

/** Claude's models in a cloud: `modelConnection.deployment`. */
type Cloud = "bedrock" | "vertex";

const clouds: Readonly<Record<string, Cloud>> = { bedrock: "bedrock", vertex: "vertex", vertex_ai: "vertex" };

function cloudOf({ modelConnection }: RunRequest): Cloud | undefined {
  const named = modelConnection?.deployment ?? "";
  return Object.hasOwn(clouds, named) ? clouds[named] : undefined;
}

/** The location of the models in the cloud that a request names; undefined for Anthropic's own API. Pure. */
export function cloudAccess(request: RunRequest): ModelAccess | undefined {
  const cloud = cloudOf(request);
  if (cloud === undefined) return undefined;
  const region = regionOf(request);
  const shared = { providers: ["anthropic", "claude"], defaultModel: "claude-sonnet-5", isKnown: () => true };
  if (cloud === "bedrock") {
    const url = `https://bedrock-runtime.${region ?? "us-east-1"}.amazonaws.com`;
    return {
      ...shared,
      credentials: [
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_BEARER_TOKEN_BEDROCK",
      ],
      endpoint: { url, variables: ["ANTHROPIC_BEDROCK_BASE_URL"] },
      route: {
        protocol: "bedrock",
        keyVariable: "ANTHROPIC_AUTH_TOKEN",
        auxiliaryModels: ["*anthropic.claude-*haiku*"],
      },
    };
  }
  const host = region === undefined || region === "global" ? "" : `${region}-`;
  return {
    ...shared,
    credentials: [
      "GOOGLE_APPLICATION_CREDENTIALS",
      "GOOGLE_APPLICATION_CREDENTIALS_JSON",
      "CLOUDSDK_AUTH_ACCESS_TOKEN",
    ],
    endpoint: {
      url: `https://${host}aiplatform.googleapis.com/v1`,
      variables: ["ANTHROPIC_VERTEX_BASE_URL"],
    },
    route: {
      protocol: "vertex",
      basePath: "/v1",
      keyVariable: "ANTHROPIC_AUTH_TOKEN",
      auxiliaryModels: ["claude-*haiku*"],
    },
  };
}

/**
 * Settings that make Claude Code use a cloud. With a model route they leave out what would sign: the route signs. Pure.
 */
export function cloudSettings(
  request: RunRequest,
  endpoint: ModelEndpoint,
): Record<string, string> | undefined {
  const cloud = cloudOf(request);
  if (cloud === undefined) return undefined;
  const { baseUrl, key } = endpoint;
  const region = regionOf(request);
  const isBedrock = cloud === "bedrock";
  return {
    [isBedrock ? "CLAUDE_CODE_USE_BEDROCK" : "CLAUDE_CODE_USE_VERTEX"]: "1",
    ...(region === undefined ? {} : { [isBedrock ? "AWS_REGION" : "CLOUD_ML_REGION"]: region }),
    ...(baseUrl === undefined
      ? {}
      : { [isBedrock ? "ANTHROPIC_BEDROCK_BASE_URL" : "ANTHROPIC_VERTEX_BASE_URL"]: baseUrl }),
    ...(key === undefined
      ? {}
      : {
          [isBedrock ? "CLAUDE_CODE_SKIP_BEDROCK_AUTH" : "CLAUDE_CODE_SKIP_VERTEX_AUTH"]: "1",
          // Vertex's client then sends no key at all, but the route requires one.
          ANTHROPIC_CUSTOM_HEADERS: `x-api-key: ${key}`,
        }),
  };
}
