// needs: jail
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { definePlugin } from "@ambit/core/plugin";
import code from "@ambit/executor-code";
import acp from "@ambit/harness-acp";
import mcp from "@ambit/mcp-http";
import { type ModelServer, startModelServer } from "@ambit/model-server";
import type { Runner } from "@ambit/runner";
import { configSchema, LocalSandbox } from "@ambit/sandbox-local";
import { openAmbit, takeEnvironment } from "ambit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asking, modelKey, ownToolsAllowed } from "../support/agents.js";
import { folder } from "../support/installed.js";
import { LiveRun } from "../support/live-run.js";
import { agentRequest, agentsOr } from "../support/matrix.js";
import { startTlsFront, type TlsFront } from "../support/tls-front.js";
import { pythonTool } from "../support/tools.js";

const host = "models.test";
let model: ModelServer;
let front: TlsFront;
let runner: Runner;
const dataFolder = mkdtempSync(join(tmpdir(), "ambit-brokered-models-"));

/** Without the model route, so that requests go through the broker. */
beforeAll(async () => {
  model = await startModelServer({ expectedKey: modelKey });
  front = await startTlsFront(model.url);
  const authority = join(dataFolder, "authority.pem");
  writeFileSync(authority, front.authority);
  const local = definePlugin({
    name: "sandbox-local",
    api: 1,
    config: configSchema,
    register: (registrar, config) =>
      registrar.add("sandbox", new LocalSandbox(config, async () => ["127.0.0.1"])),
  });
  ({ runner } = await openAmbit({
    environment: takeEnvironment({}),
    configuration: {
      plugins: [
        { use: local, config: { unconfined: "refuse", trustedAuthorities: [authority] } },
        { use: acp, config: { folder } },
        mcp,
        code,
      ],
    },
    logLevel: "silent",
  }));
});
afterAll(async () => {
  await runner.drain(0);
  await front[Symbol.asyncDispose]();
  await model.close();
  rmSync(dataFolder, { recursive: true, force: true });
});

describe.each(agentsOr("codex"))(
  "$id, its model reached through the credential broker",
  { timeout: 90_000 },
  (agent) => {
    it("calls a tool and responds, with a placeholder for its key", async () => {
      const request = agentRequest(agent, { ...model, url: `https://${host}:${front.port}` });
      const run = await LiveRun.begin(runner, {
        ...request,
        ...asking(
          `[[call twice {"number":21}]] [[shell printenv ${agent.credential} | sha256sum]] [[say Done.]]`,
        ),
        customTools: [pythonTool("twice", "def main(number): return number * 2")],
        permissions: { default: "allow", rules: ownToolsAllowed },
        sandboxPermission: {
          network: { allowlist: [`${host}:${front.port}`, `127.0.0.1:${front.port}`] },
          filesystem: "workspace",
          secrets: "hidden",
        },
      });
      const result = await run.result;
      expect(result).toMatchObject({
        ok: true,
        stopReason: "end_turn",
        output: expect.stringContaining("Done."),
      });
      expect(result.receipt).toMatchObject({
        confinement: "confined",
        visibleCredentials: [],
        credentials: [{ name: agent.credential, hosts: [`${host}:${front.port}`], by: "broker" }],
      });
      expect(run.of("tool_result")[0]).toMatchObject({ output: "42" });
      // Compared by digest: the value would be redacted in the run's events.
      const digest = createHash("sha256").update(`${modelKey}\n`).digest("hex");
      expect(JSON.stringify(run.events)).not.toContain(digest);
      const asked = model.requests.filter(({ operation }) => operation === "generate");
      expect(asked.length).toBeGreaterThan(0);
      expect(new Set(asked.flatMap(({ credentials }) => credentials))).toEqual(new Set([modelKey]));
      expect(run.of("boundary_decision")).toContainEqual(
        expect.objectContaining({
          target: `${host}:${front.port}`,
          allowed: true,
          reason: expect.stringContaining(`TLS ends here for ${agent.credential}`),
        }),
      );
    });
  },
);
