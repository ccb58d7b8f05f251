// needs: jail
import { definePlugin } from "@ambit/core/plugin";
import acp from "@ambit/harness-acp";
import { configSchema, LocalSandbox } from "@ambit/sandbox-local";
import { openAmbit, takeEnvironment } from "ambit";
import { expect, it } from "vitest";
import { asking, modelKey, startAgent } from "../support/agents.js";
import { folder } from "../support/installed.js";
import { LiveRun } from "../support/live-run.js";

/** Made-up names, which all resolve to this host. */
const onThisHost = definePlugin({
  name: "sandbox-with-names",
  api: 1,
  config: configSchema,
  register: (registrar, config) => {
    registrar.add("sandbox", new LocalSandbox(config, () => Promise.resolve(["127.0.0.1"])));
  },
});

it("Gemini CLI works with one allowed host, and its refused connections are events", {
  retry: 0,
  timeout: 90_000,
}, async () => {
  const gemini = await startAgent("gemini");
  const { port } = new URL(gemini.model?.url ?? "");
  const { runner } = await openAmbit({
    environment: takeEnvironment({}),
    configuration: { plugins: [onThisHost, { use: acp, config: { profiles: ["gemini"], folder } }] },
    logLevel: "silent",
  });
  const credentials = [{ binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: modelKey }];
  const leaving =
    "[[shell curl -sS -m 5 http://elsewhere.test/]] [[shell touch /usr/mine]] [[shell touch mine]]";
  const run = await LiveRun.begin(runner, {
    harness: "gemini",
    ...asking(leaving),
    permissions: { default: "allow" },
    sandboxPermission: {
      // The address is listed too, because it is a loopback address.
      network: { allowlist: [`model.test:${port}`, `127.0.0.1/32:${port}`] },
      filesystem: "workspace",
    },
    modelConnection: { endpoint: { baseUrl: `http://model.test:${port}` }, credentials },
  });
  const result = await run.result;
  expect(result).toMatchObject({ ok: true, stopReason: "end_turn", receipt: { confinement: "confined" } });
  const decisions = run.of("boundary_decision");
  expect(decisions).toContainEqual(expect.objectContaining({ target: `model.test:${port}`, allowed: true }));
  expect(decisions).toContainEqual(expect.objectContaining({ target: "elsewhere.test:80", allowed: false }));
  expect(result.receipt?.decisions.refused).toBeGreaterThan(0);
  const outputs =
    gemini.model?.requests.flatMap(({ toolResults }) => toolResults).map(({ text }) => text) ?? [];
  expect(outputs.join("\n")).toMatch(/boundary/i);
  expect(outputs.join("\n")).toMatch(/Read-only file system/);
  await Promise.all([runner.drain(0), gemini.close()]);
});
