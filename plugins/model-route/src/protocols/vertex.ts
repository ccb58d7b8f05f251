import type { Issue, ModelUse } from "@ambit/core/plugin";
import { anthropicFinishPaths, countAnthropic, finishAnthropic } from "./anthropic.js";
import { countGemini, finishGemini, geminiFinishPaths } from "./gemini.js";
import {
  type Authorization,
  fixedHeaders,
  type GuardOf,
  type Protocol,
  queryOf,
  unknownCall,
} from "./protocol.js";
import { accountIn, accountTokens } from "./service-account.js";

const call =
  /^\/(v1|v1beta1)\/projects\/([\w-]{1,60})\/locations\/([a-z0-9-]{1,40})\/publishers\/(anthropic|google)\/models\/([\w.@-]{1,120}):(rawPredict|streamRawPredict|generateContent|streamGenerateContent|countTokens)$/;

/** Google's Vertex AI. Access tokens are fetched here, with a service account's key: the agent sends none. */
export const vertex: Protocol = {
  read: ({ method, pathname, search }) => {
    const query = queryOf(search, { alt: /^sse$/ });
    if (typeof query !== "string") return query;
    const [, , , , , model, verb] = call.exec(pathname) ?? [];
    if (method !== "POST" || model === undefined) return unknownCall;
    // Counting is a separate model here; the body names the one to count for.
    if (model === "count-tokens") return { kind: "count-tokens", path: pathname, query };
    return { kind: verb === "countTokens" ? "count-tokens" : "generate", path: pathname, query, model };
  },
  requestHeaders: ["anthropic-beta", "x-goog-api-client"],
  usagePaths: ["usage", "message.usage", "usageMetadata"],
  count: (before, path, usage) =>
    path === "usagemetadata" ? countGemini(before, path, usage) : countAnthropic(before, path, usage),
  finishPaths: [...anthropicFinishPaths, ...geminiFinishPaths],
  finish: (path, value) => finishAnthropic(path, value) ?? finishGemini(path, value),
  issues,
  authorization,
};

function issues({ credentials, endpoint }: ModelUse): readonly Issue[] {
  const path = "modelConnection.credentials";
  if (credentials.CLOUDSDK_AUTH_ACCESS_TOKEN !== undefined) return [];
  const account = accountOf(credentials);
  if (account === undefined) {
    const message = "Vertex needs the JSON of a service account's key, or CLOUDSDK_AUTH_ACCESS_TOKEN";
    return [{ path, message }];
  }
  const read = accountIn(account, endpoint);
  return typeof read === "string" ? [{ path, message: read }] : [];
}

function accountOf(credentials: ModelUse["credentials"]): string | undefined {
  return credentials.GOOGLE_APPLICATION_CREDENTIALS_JSON ?? credentials.GOOGLE_APPLICATION_CREDENTIALS;
}

function authorization({ credentials, endpoint }: ModelUse, guardOf: GuardOf): Authorization | undefined {
  const { CLOUDSDK_AUTH_ACCESS_TOKEN: token } = credentials;
  if (token !== undefined) return fixedHeaders({ authorization: `Bearer ${token}` });
  const account = accountIn(accountOf(credentials) ?? "", endpoint);
  if (typeof account === "string") return undefined;
  const tokens = accountTokens(account, guardOf);
  return {
    headers: async () => ({ authorization: `Bearer ${await tokens.current()}` }),
    refused: ({ authorization = "" }) => tokens.forget(authorization.replace(/^Bearer /, "")),
  };
}
