import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { demo, isMessage, ndjson, readUntil, recordsOf, serve } from "../support/ambit.js";
import { unconfined } from "../support/configurations.js";
import { descendantsOf, processes } from "../support/processes.js";

describe("a secret in the runner's environment", { retry: 0 }, () => {
  it.each([
    ["by default", []],
    ["unconfined", unconfined],
  ])("is in no process of a run: %s", { timeout: 300_000 }, async (_, args) => {
    const canary = `canary-${randomUUID()}`;
    const server = await serve({ CANARY: canary, AMBIT_TOKEN: `token-${canary}` }, args);
    // A probe's control is a plain child process, which has the runner's whole environment.
    await expect
      .poll(async () => await (await fetch(`${server.url}/health`)).json(), { timeout: 240_000 })
      .toMatchObject({ probing: false });
    const response = await server.post(
      "/run",
      demo("env", "run cat /proc/self/environ", "say at work", "hang"),
      { ...ndjson, authorization: `Bearer token-${canary}` },
    );
    const seen: string[] = [];
    await readUntil(recordsOf(response), (record) => {
      seen.push(JSON.stringify(record));
      return isMessage("at work")(record);
    });
    const started = descendantsOf(server.pid);
    // The controls: the runner has it, the agent printed its environment, and its processes were inspected.
    expect(processes().find(({ pid }) => pid === server.pid)?.environment).toContain(canary);
    expect(seen.join()).toContain("HOME");
    expect(started.some(({ environment }) => environment.includes("HOME="))).toBe(true);
    expect(seen.join()).not.toContain(canary);
    expect(started.filter(({ environment }) => environment.includes(canary))).toEqual([]);
    expect(started.filter(({ command }) => command.includes(canary))).toEqual([]);
  });

  it("isn't in the log or in a response, for any caller", async () => {
    const token = `token-${randomUUID()}`;
    const secret = `secret-${randomUUID()}`;
    const server = await serve({ AMBIT_TOKEN: token, AMBIT_LOG_LEVEL: "debug" });
    const headers = { authorization: `Bearer ${token}` };
    const request = {
      ...demo(`say ${secret}`, `fail ${secret}`),
      toolCallback: { endpoint: "http://127.0.0.1:9/", authorization: secret },
    };
    const failed = await (await server.post("/run", request, headers)).text();
    await server.post("/run", request, { authorization: `Bearer ${token}x` });
    expect(failed).toContain("[redacted]");
    expect(failed).not.toContain(secret);
    expect(server.log()).toContain("a run has ended");
    expect(server.log()).not.toContain(secret);
    expect(server.log()).not.toContain(token);
  });
});
