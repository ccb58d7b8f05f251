import type { IncomingHttpHeaders } from "node:http";
import type { Dialect } from "@ambit/core";
import { matchesBearer } from "@ambit/core/plugin";

/** The headers in which a caller may present its token for the API. */
export function tokenHeadersOf(dialects: readonly Dialect[]): readonly string[] {
  return ["authorization", "x-ambit-token", ...dialects.flatMap(({ tokenHeaders = [] }) => tokenHeaders)];
}

/** The tokens that a request presents, in a header with the scheme `Bearer` or in one that holds nothing else. */
export function presentedTokens(
  headers: IncomingHttpHeaders,
  dialects: readonly Dialect[],
): readonly string[] {
  const ofScheme = /^bearer +([^ ].*)$/i.exec(headers.authorization ?? "")?.[1];
  const bare = tokenHeadersOf(dialects)
    .filter((name) => name !== "authorization")
    .map((name) => headers[name]);
  return [ofScheme, ...bare].filter((value) => typeof value === "string");
}

/** Whether one of the presented tokens is this one. Each is compared in constant time. */
export function presentsToken(presented: readonly string[], token: string): boolean {
  return presented.filter((one) => matchesBearer(`Bearer ${one}`, token)).length > 0;
}
