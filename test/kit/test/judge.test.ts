import { rm } from "node:fs/promises";
import type { SandboxBackend } from "@ambit/core/plugin";
import { afterAll, expect, it } from "vitest";
import { bareControl, judgeCapability } from "../src/attacks.js";
import makeBackend, { makeDataFolder } from "./backends/local.mjs";
import { liar } from "./liar.js";

const dataFolder = makeDataFolder();
afterAll(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));

it("puts a capability to the test alone, where nothing else is claimed", {
  timeout: 60_000,
}, async (context) => {
  const capability = "filesystem.host-hidden";
  const whole = makeBackend(dataFolder);
  const finding = (await whole.probe(AbortSignal.timeout(60_000))).find(
    (one) => one.capability === capability,
  );
  if (finding?.proven !== true) context.skip(`host: ${capability} isn't proven here`);
  const asked: string[][] = [];
  const alone: SandboxBackend = {
    name: "alone",
    site: "sandbox",
    claims: [capability],
    touches: () => whole.touches(),
    gaps: () => [],
    probe: () => Promise.resolve([]),
    open: (spec, scope) => {
      asked.push([...spec.required]);
      return whole.open(spec, scope);
    },
  };
  const seen = [{ capability, proven: true, how: "seen" }] as const;
  const only = ["filesystem.host-hidden/by-path"];
  const report = await judgeCapability(alone, seen, capability, { control: bareControl(), only });
  expect(report).toMatchObject({ standing: "proven", reason: "seen" });
  expect(new Set(asked.flat())).toEqual(new Set([capability]));
});

it("says of an attack that works what was seen of it, not what the probe said", {
  timeout: 60_000,
}, async () => {
  const capability = "environment.named-only";
  const seen = [{ capability, proven: true, how: "everything is fine" }] as const;
  const only = ["environment.named-only/own"];
  const report = await judgeCapability(liar(), seen, capability, { control: bareControl(), only });
  expect(report.standing).toBe("escaped");
  expect(report.reason).toContain(
    "escaped: find the runner's variables in its own environment (environ: ambit-decoy-",
  );
  expect(report.reason).not.toContain("everything is fine");
});
