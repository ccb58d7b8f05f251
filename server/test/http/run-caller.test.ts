import type { FailedResult, RunResult } from "@ambit/core";
import type { LocalConnection } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import { saying } from "../support/scripted-agent.js";
import { asking, bodyOf, serveScript } from "../support/server.js";

const token = "s3cret-token-of-16";

describe("a caller that is a process of a run", () => {
  it("may neither start nor end a run, nor request a plan", async () => {
    const { post, url } = await serveScript(saying("x"), { madeConnection: async () => true });
    for (const path of [
      "/run",
      "/stream",
      "/plan",
      "/kill",
      "/runs/one/cancel",
      "/runs/one/interactions/two",
    ]) {
      const refused = await post(path, asking);
      expect(refused.status, path).toBe(403);
      expect(await refused.text()).toContain("A process of a run mustn't call the runner");
    }
    expect((await fetch(`${url}/plugins`)).status).toBe(403);
    // Reports that the server is up, and nothing else.
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });

  it("is recognised by its connection, with one lookup", async () => {
    const asked: LocalConnection[] = [];
    const { post, url } = await serveScript(saying("x"), {
      madeConnection: async (connection) => {
        asked.push(connection);
        return false;
      },
    });
    for (let count = 0; count < 3; count++)
      expect((await bodyOf<RunResult>(await post("/run", asking))).ok).toBe(true);
    const ports = asked.map(({ remotePort }) => remotePort);
    expect(ports.length).toBeGreaterThan(0);
    expect(new Set(ports).size).toBe(ports.length);
    expect(asked[0]?.localPort).toBe(Number(new URL(url).port));
  });

  it("isn't looked up if a token identifies callers", async () => {
    const { post } = await serveScript(saying("x"), { token, madeConnection: async () => true });
    expect((await post("/run", asking, { authorization: `Bearer ${token}` })).status).toBe(200);
    expect((await post("/run", asking)).status).toBe(401);
  });

  it("is refused if the backend fails to look it up", async () => {
    const { post } = await serveScript(saying("x"), {
      madeConnection: () => Promise.reject(new TypeError("no table")),
    });
    const refused = await post("/run", asking);
    expect(refused.status).toBe(500);
    expect((await bodyOf<FailedResult>(refused)).failure.code).toBe("plugin_broke_contract");
  });
});
