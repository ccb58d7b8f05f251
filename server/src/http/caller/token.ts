import type { IncomingHttpHeaders } from "node:http";
import { matchesBearer } from "@ambit/core/plugin";

/** Headers that carry the runner's token without a scheme. The second one is an earlier runner's. */
const tokenHeaders = ["x-ambit-token", "x-agenta-runner-token"] as const;

/** Every token that some header presents. */
export function presentedTokens(headers: IncomingHttpHeaders): readonly string[] {
  const { authorization } = headers;
  const ofScheme = /^bearer +([^ ].*)$/i.exec(authorization ?? "")?.[1];
  const bare = tokenHeaders.map((name) => headers[name]);
  return [ofScheme, ...bare].filter((value) => typeof value === "string");
}

/** Whether any header presents the token. Each is compared in constant time. */
export function presentsToken(headers: IncomingHttpHeaders, token: string): boolean {
  const presented = [headers.authorization, ...tokenHeaders.map((name) => bearer(headers[name]))];
  return presented.filter((header) => matchesBearer(header, token)).length > 0;
}

function bearer(value: string | string[] | undefined): string | undefined {
  return typeof value === "string" ? `Bearer ${value}` : undefined;
}
