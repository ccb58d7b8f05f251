import { type Dialect, definePlugin, type JsonObject } from "@ambit/core/plugin";
import { z } from "zod";

/**
 * Requests of callers who know another spelling: `{"ask": "say hello", "agent": "demo"}`. What a dialect returns is validated like
 * any request, so it only translates what it knows, and leaves everything else as it is.
 */
export const dialect: Dialect = {
  name: "sample",
  // Suggested in place of a misspelt key.
  keys: { "": ["ask", "agent"] },
  // Pure and synchronous, for any JSON: a value of another type is not its concern.
  translate: (request) => {
    const { ask, agent, ...others } = request;
    if (ask === undefined && agent === undefined) return { request, issues: [] };
    const issues = [
      ...clash(request, "ask", "messages"),
      ...clash(request, "agent", "harness"),
      ...(ask === undefined || typeof ask === "string" ? [] : [{ path: "ask", message: "must be a text" }]),
    ];
    return {
      request: {
        ...others,
        ...(ask === undefined ? {} : { messages: [{ role: "user", content: ask }] }),
        ...(agent === undefined ? {} : { harness: agent }),
      },
      issues,
    };
  },
};

/** Never guess which of two values is meant. */
function clash(request: JsonObject, key: string, current: string) {
  const isGiven = (value: unknown) => value !== undefined && value !== null;
  if (!isGiven(request[key]) || !isGiven(request[current])) return [];
  return [{ path: key, message: `is the same as \`${current}\`: send one of them` }];
}

export default definePlugin({
  name: "ambit-sample",
  api: 1,
  config: z.strictObject({}),
  register: (registrar) => registrar.add("dialect", dialect),
});
