import { type SandboxBackend, SandboxFailed } from "@ambit/core/plugin";
import { beforeEach, expect, it } from "vitest";
import { skipWithout } from "../../../scripts/vitest/skip-without.ts";
import { bareControl, judgeCapability } from "../src/index.js";
import { liar } from "./liar.js";

beforeEach(() => skipWithout("python"));

it("reports what a working attack reached, not the probe's finding", {
  timeout: 60_000,
}, async () => {
  const capability = "environment.named-only";
  const seen = [{ capability, proven: true, how: "everything is fine" }] as const;
  const only = ["environment.named-only/own"];
  const report = await judgeCapability(liar(), seen, capability, { control: bareControl(), only });
  expect(report.assurance).toBe("escaped");
  expect(report.reason).toContain(
    "escaped: find the runner's variables in its own environment (environ: ambit-decoy-",
  );
  expect(report.reason).not.toContain("everything is fine");
});

/** The liar, whose first sandboxes are lost when a program starts in them. */
function unreliable(losses: number): SandboxBackend {
  const backend = liar();
  let opened = 0;
  return {
    ...backend,
    open: async (spec, scope) => {
      const sandbox = await backend.open(spec, scope);
      opened += 1;
      if (opened > losses) return sandbox;
      sandbox.spawn = async () => {
        spec.onFailure?.(new SandboxFailed("the engine went away"));
        throw new SandboxFailed("the sandbox is closed");
      };
      return sandbox;
    },
  };
}

it.each([
  [1, "escaped", "escaped: find the runner's variables"],
  [2, "unproven", "the sandbox is closed; a sandbox was lost: the engine went away"],
] as const)(
  "tries once more where the sandbox was lost: %d times",
  {
    timeout: 60_000,
  },
  async (losses, assurance, reason) => {
    const capability = "environment.named-only";
    const seen = [{ capability, proven: true, how: "everything is fine" }] as const;
    const only = ["environment.named-only/own"];
    const report = await judgeCapability(unreliable(losses), seen, capability, {
      control: bareControl(),
      only,
    });
    expect(report.assurance).toBe(assurance);
    expect(report.reason).toContain(reason);
  },
);
