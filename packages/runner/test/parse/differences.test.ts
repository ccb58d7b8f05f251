import { describe, expect, test } from "vitest";
import { differencesOf } from "../../src/parse/compat/differences.js";
import { parseRunRequest } from "../../src/parse/parse.js";
import { golden } from "./golden-files.js";

describe("what differs for a request", () => {
  const of = (body: unknown) => {
    const parsed = parseRunRequest(body);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.issues));
    return differencesOf(parsed.request).map(({ about }) => about);
  };

  test("is said where it applies, and not elsewhere", () => {
    const command = of(golden("reference-request-sdk-0.125-detached-controlled"));
    expect(command).toContain("`controlCommandId`");
    expect(command).not.toContain("an MCP server that can't be reached");
    expect(of(golden("reference-request-sdk-0.125-gateway-tools-approval"))).toContain(
      "an MCP server that can't be reached",
    );
    expect(of({ context: { propagation: { traceparent: "00-1" } } })).toEqual([]);
  });
});
