import { HarnessFailed } from "@ambit/core";
import { says } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { mcpServerFailed } from "../../src/session/publish.js";
import { createWorld, eventsOf } from "../fakes/world.js";

const failed = (cause: unknown) => new HarnessFailed("MCP server 'a' could not be reached.", { cause });
const withCode = (code: unknown) => Object.assign(new Error("x"), { code });

describe("an MCP server that fails", () => {
  test.each([
    [
      "a refused connection",
      new TypeError("fetch failed", { cause: withCode("ECONNREFUSED") }),
      "handshake_unreachable",
      undefined,
    ],
    [
      "several addresses",
      new TypeError("x", { cause: new AggregateError([withCode("ECONNREFUSED")]) }),
      "handshake_unreachable",
      undefined,
    ],
    ["a status", withCode(503), "handshake_http_error", 503],
    ["a wrong token", withCode(401), "handshake_rejected", 401],
    ["no MCP", new SyntaxError("x"), "handshake_invalid_response", undefined],
  ])("%s is told by its code", (_what, cause, reasonCode, status) => {
    expect(mcpServerFailed("a", failed(cause))).toEqual({
      type: "mcp_server_failed",
      serverName: "a",
      reasonCode,
      message: "MCP server 'a' could not be reached.",
      status,
    });
  });

  test("is an event before the run fails", async () => {
    const world = await createWorld({ script: says("never") });
    world.toolSource.connect = async () => {
      throw failed(withCode("ECONNREFUSED"));
    };
    const mcpServers = [{ name: "a", connection: { type: "http", url: "https://a.example" } }];
    const told = await world.run({ mcpServers });
    expect(eventsOf(told, "mcp_server_failed")).toMatchObject([{ serverName: "a" }]);
    expect(told.result).toMatchObject({ ok: false, failure: { code: "harness_failed" } });
  });
});
