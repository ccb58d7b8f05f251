import type { ActorDescription, FailedResult } from "@ambit/core";
import { beforeAll, describe, expect, it } from "vitest";
import { bodyOf, demo, type Server, startServer } from "../support/ambit.js";
import { noJail } from "../support/configurations.js";

/** One server on this host, one on a host that can prove nothing. */
let server: Server;
let unable: Server;

beforeAll(async () => {
  // With its own evidence: what an earlier server couldn't prove, one that refuses would probe again.
  [server, unable] = await Promise.all([startServer({}, []), startServer({}, noJail)]);
  return () => {
    for (const started of [server, unable]) started.process.kill("SIGKILL");
  };
});

/** Whether this host's local sandbox proves the capability, as the server reports; the kit checks these reports. */
async function proves(capability: string): Promise<boolean> {
  const { actors } = await bodyOf<{ actors: ActorDescription[] }>(await fetch(`${server.url}/plugins`));
  return actors.some(
    ({ name, findings }) =>
      name === "local" && findings.some((found) => found.capability === capability && found.proven),
  );
}

const noMessage = { path: "messages", message: "No user message to send (prompt/messages empty)." };

describe("the requests of the first reviewers", () => {
  it.each([
    ["network.deny", { sandbox_permission: { network: "restricted" } }],
    ["filesystem.read-only", { sandbox_permission: { filesystem: "readonly" } }],
  ])("%s is guaranteed or refused, never ignored", async (capability, boundary) => {
    const response = await server.post("/run", { harness: "pi_core", ...boundary, messages: [] });
    const { failure } = await bodyOf<FailedResult>(response);
    expect(failure.issues).toContainEqual(noMessage);
    if (await proves(capability)) {
      expect(response.status).toBe(400);
      expect(failure.code).toBe("request_invalid");
    } else {
      expect(response.status).toBe(422);
      expect(failure.gaps).toContainEqual(expect.objectContaining({ actor: "local", capability }));
    }
  });

  it.each([
    ["network.deny", { sandbox_permission: { network: "restricted" } }],
    ["filesystem.read-only", { sandbox_permission: { filesystem: "readonly" } }],
  ])("%s is refused where the host can't enforce it", async (capability, boundary) => {
    const response = await unable.post("/run", { harness: "pi_core", ...boundary, messages: [] });
    expect(response.status).toBe(422);
    const { failure } = await bodyOf<FailedResult>(response);
    expect(failure.gaps).toContainEqual(
      expect.objectContaining({ actor: "local", capability, fix: expect.stringMatching(/./) }),
    );
    expect(failure.issues).toContainEqual(noMessage);
  });

  it("a stdio MCP server needs a sandbox that confines processes", async () => {
    const servers = [{ name: "test", transport: "stdio", command: "echo" }];
    const response = await unable.post("/run", { harness: "pi_core", mcp_servers: servers, messages: [] });
    expect(response.status).toBe(422);
    expect(JSON.stringify(await bodyOf<FailedResult>(response))).toContain("test");
  });
});

describe("a misspelt boundary", () => {
  it.each([
    [{ sandboxPermissions: { network: "off" } }, "did you mean `sandboxPermission`?"],
    [{ sandboxPermission: { netwrok: "off" } }, "did you mean `network`?"],
    [{ sandboxPermission: { network: { mode: "allow" } } }, 'must be one of "on", "off", "allowlist"'],
  ])("is refused by its path: %o", async (boundary, fix) => {
    const response = await server.post("/run", { ...demo("say hi"), ...boundary });
    expect(response.status).toBe(400);
    const { failure } = await bodyOf<FailedResult>(response);
    expect(failure.issues?.[0]?.message).toContain(fix);
  });
});
