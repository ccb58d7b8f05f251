import { rm } from "node:fs/promises";
import type { SandboxBackend } from "@ambit/core/plugin";
import { bareControl, judgeCapability } from "@ambit/testkit";
import { requireProven } from "@ambit/testkit/vitest";
import { afterAll, expect, it } from "vitest";
import makeBackend, { makeDataFolder } from "./backend.mjs";

const dataFolder = makeDataFolder();
afterAll(() => rm(dataFolder, { recursive: true, force: true, maxRetries: 5 }));

it("tests a capability alone, with nothing else claimed", {
  timeout: 60_000,
}, async (context) => {
  const capability = "filesystem.host-hidden";
  const whole = makeBackend(dataFolder);
  requireProven(context, whole, await whole.probe(AbortSignal.timeout(60_000)), capability);
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
  expect(report).toMatchObject({ assurance: "proven", reason: "seen" });
  expect(new Set(asked.flat())).toEqual(new Set([capability]));
});
