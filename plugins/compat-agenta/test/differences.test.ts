import { describe, expect, test } from "vitest";
import { differences } from "../src/differences.js";
import { golden, requestOf } from "./parsing.js";

describe("what differs for a request", () => {
  const of = (body: unknown) => {
    const request = requestOf(body);
    return differences.flatMap(({ about, applies }) => (applies?.(request) === true ? [about] : []));
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
