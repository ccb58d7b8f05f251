import type { IncomingHttpHeaders } from "node:http";
import type { Dialect } from "@ambit/core";
import { matchesBearer } from "@ambit/core/plugin";

/** The tokens that a request presents, in a header with the scheme `Bearer` or in one that holds nothing else. */
export function presentedTokens(
  headers: IncomingHttpHeaders,
  dialects: readonly Dialect[],
): readonly string[] {
  const ofScheme = /^bearer +([^ ].*)$/i.exec(headers.authorization ?? "")?.[1];
  const further = dialects.flatMap(({ tokenHeaders = [] }) => tokenHeaders);
  const bare = ["x-ambit-token", ...further].map((name) => headers[name]);
  return [ofScheme, ...bare].filter((value) => typeof value === "string");
}

/** Whether one of the presented tokens is this one. Each is compared in constant time. */
export function presentsToken(presented: readonly string[], token: string): boolean {
  return presented.filter((one) => matchesBearer(`Bearer ${one}`, token)).length > 0;
}
