import { createHash } from "node:crypto";
import type { Issue, ModelUse } from "@ambit/core/plugin";
import { anthropicFinishPaths, countAnthropic, finishAnthropic } from "./anthropic.js";
import {
  type Authorization,
  type Counted,
  countAt,
  type Finish,
  finishOf,
  fixedHeaders,
  type Protocol,
  queryOf,
  type SignedRequest,
  unknownCall,
} from "./protocol.js";

const call = /^\/model\/([^/]{1,600})\/(invoke|invoke-with-response-stream|converse|converse-stream)$/;
/** A model's id, a profile's, or its ARN. */
const modelId = /^[\w.:/-]{1,400}$/;
/** The service's name in signatures, for each of its hosts. */
const service = "bedrock";

/** Amazon Bedrock's runtime. Requests are signed here, with Signature Version 4: the agent sends them unsigned. */
export const bedrock: Protocol = {
  read: ({ method, pathname, search }) => {
    const query = queryOf(search, {});
    const [, encoded = "", verb] = call.exec(pathname) ?? [];
    const model = decoded(encoded);
    if (typeof query !== "string") return query;
    if (method !== "POST" || verb === undefined || model === undefined) return unknownCall;
    return { kind: "generate", path: `/model/${encodeURIComponent(model)}/${verb}`, query, model };
  },
  requestHeaders: ["anthropic-beta", "x-amzn-bedrock-accept"],
  usagePaths: ["usage", "message.usage", "amazon-bedrock-invocationmetrics"],
  count: countBedrock,
  // Converse has its reason under another name, and its streams begin with the role.
  finishPaths: [...anthropicFinishPaths, "stopReason", "role"],
  finish: finishBedrock,
  issues,
  authorization,
};

function decoded(segment: string): string | undefined {
  try {
    const model = decodeURIComponent(segment);
    return modelId.test(model) && !model.includes("..") ? model : undefined;
  } catch {
    // A percent sign that starts no valid escape.
    return undefined;
  }
}

/**
 * Usage in Anthropic's format, which its models also use here; in the Converse API's; and in the service's own, at a
 * stream's end.
 */
function countBedrock(before: Counted, path: string, usage: unknown): Counted {
  const counted = countAnthropic(before, path, usage);
  const input = countAt(usage, "inputTokens") + countAt(usage, "cacheReadInputTokens");
  return {
    ...counted,
    input: Math.max(counted.input, input, countAt(usage, "inputTokenCount")),
    cached: Math.max(
      counted.cached,
      countAt(usage, "cacheReadInputTokens"),
      countAt(usage, "cacheReadInputTokenCount"),
    ),
    output: Math.max(counted.output, countAt(usage, "outputTokens"), countAt(usage, "outputTokenCount")),
  };
}

function finishBedrock(path: string, value: unknown): Finish | undefined {
  if (path === "role") return "open";
  const limits = ["max_tokens", "model_context_window_exceeded"];
  return path === "stopreason" ? finishOf(value, limits) : finishAnthropic(path, value);
}

function issues({ credentials, region }: ModelUse): readonly Issue[] {
  const problems: Issue[] = [];
  const hasToken = credentials.AWS_BEARER_TOKEN_BEDROCK !== undefined;
  const hasKeys =
    credentials.AWS_ACCESS_KEY_ID !== undefined && credentials.AWS_SECRET_ACCESS_KEY !== undefined;
  if (!hasToken && !hasKeys) {
    const message = "Bedrock needs AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, or AWS_BEARER_TOKEN_BEDROCK";
    problems.push({ path: "modelConnection.credentials", message });
  }
  if (!hasToken && !/^[a-z]{2}(-[a-z]+)+-\d$/.test(region ?? "")) {
    problems.push({
      path: "modelConnection.endpoint.region",
      message: "must be a region, such as us-east-1",
    });
  }
  return problems;
}

function authorization({ credentials, region }: ModelUse): Authorization | undefined {
  const {
    AWS_BEARER_TOKEN_BEDROCK: token,
    AWS_ACCESS_KEY_ID: accessKeyId,
    AWS_SECRET_ACCESS_KEY: secretAccessKey,
    AWS_SESSION_TOKEN: sessionToken,
  } = credentials;
  if (token !== undefined) return fixedHeaders({ authorization: `Bearer ${token}` });
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined;
  // Derived from the secret once a day.
  const cache = new Map<string, ArrayBuffer>();
  const keys = { accessKeyId, secretAccessKey, ...(sessionToken === undefined ? {} : { sessionToken }) };
  return {
    headers: async ({ method, url, headers, body }: SignedRequest) => {
      const { AwsV4Signer } = await import("aws4fetch");
      const signer = new AwsV4Signer({
        ...keys,
        method,
        url: url.href,
        service,
        cache,
        ...(region === undefined ? {} : { region }),
        headers: {
          ...(headers["content-type"] === undefined ? {} : { "content-type": headers["content-type"] }),
          "x-amz-content-sha256": digestOf(body),
        },
      });
      return Object.fromEntries((await signer.sign()).headers);
    },
  };
}

function digestOf(body: Buffer | undefined): string {
  const hash = createHash("sha256");
  if (body !== undefined) hash.update(body);
  return hash.digest("hex");
}
