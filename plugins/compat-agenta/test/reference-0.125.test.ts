import { onDisconnectOf } from "@ambit/core/contract";
import { secretsOf } from "@ambit/runner";
import { describe, expect, test } from "vitest";
import { gatewayPolicy } from "../src/gateway-policy.js";
import { golden, issuesOf, requestOf } from "./parsing.js";

const sent = (name: string) => requestOf(golden(`reference-request-sdk-0.125-${name}`));

describe("the newest SDK's requests keep their meaning", () => {
  test("a restriction of an integration, and one of a server's tool", () => {
    const request = sent("gateway-tools-approval");
    const { customTools, mcpServers } = request;
    const decide = gatewayPolicy.forRun(request)?.decide;
    const call = { integration: "github", tool: "DELETE_REPO", arguments: {} };
    expect(customTools.map((tool) => decide?.(tool, call)?.kind)).toContain("denied");
    expect(mcpServers[0]?.policy).toMatchObject({
      permission: "allow",
      toolPermissions: { wipe: "deny" },
      newToolPermission: "ask",
    });
  });

  test.each([
    ["gateway-connection", "Secret example-gateway-credential"],
    ["gateway-connection", "example-gateway-credential"],
    ["sandbox-permission-credentials", "example-github-token"],
    ["subscription-connection", "example-refresh-token"],
  ])("%s: its credentials are redacted", (name, secret) => {
    expect(secretsOf(sent(name))).toContain(secret);
  });

  test("its caller owns a run that isn't detached, also in a session", () => {
    expect(onDisconnectOf(sent("simple-chat"))).toBe("cancel");
    expect(onDisconnectOf(sent("detached-controlled"))).toBe("continue");
    // An SDK before it says neither: the run belongs to its session.
    const { platformInstructions: _none, ...before } = golden(
      "reference-request-sdk-0.125-simple-chat",
    ) as Record<string, unknown>;
    expect(onDisconnectOf(requestOf(before))).toBe("continue");
  });

  test("its name for the command and the turn", () => {
    expect(sent("detached-controlled")).toMatchObject({
      turnId: "0192aaaa-0000-7000-8000-0000000000d1",
      controlCommandId: "0192aaaa-0000-7000-8000-0000000000e1",
    });
  });
});

test.each<[body: object, path: string]>([
  [{ detached: "yes" }, "detached"],
  [{ detached: true, onDisconnect: "cancel" }, "detached"],
])("%j is refused", (body, path) => {
  expect(issuesOf(body).map((issue) => issue.path)).toContain(path);
});
