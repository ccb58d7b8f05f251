import { spawn } from "node:child_process";
import { once } from "node:events";
import { attacks } from "@ambit/attacks";
import { type SandboxBackend, SandboxFailed, type ToolExecutor } from "@ambit/core/plugin";
import { describe, expect, it, onTestFinished } from "vitest";
import { skipWithout } from "../../../scripts/vitest/skip-without.ts";
import { tryExecutorAttack } from "../src/executor/executor-attack.js";
import { openWorld } from "../src/executor/world.js";
import { bareControl, judgeCapability } from "../src/index.js";
import { missingOption } from "../src/judge/judge-capability.js";
import { probeWithin } from "../src/stage/kit-scope.js";
import { tryWithoutProgram } from "../src/vitest/without-program.js";
import { liar } from "./liar.js";

describe("an author whose platform's program isn't there", () => {
  /** @param isCareful whether it listens to the program's `error` */
  const starting = (isCareful: boolean): SandboxBackend => {
    const start = async (): Promise<never> => {
      const child = spawn("/nonexistent/program", []);
      if (isCareful) await once(child, "spawn");
      return new Promise(() => undefined);
    };
    return {
      ...liar(),
      probe: start,
      open: () =>
        start().catch((error: unknown) => {
          throw new SandboxFailed("the program could not be started", { cause: error });
        }),
    };
  };

  it("passes if it says so", async () => {
    expect(await tryWithoutProgram(starting(true))).toEqual({
      proven: [],
      opening: "rejected",
      unhandled: [],
    });
  });

  it("is caught if it leaves the error unhandled", async () => {
    const listeners = process.rawListeners("uncaughtException");
    const tried = await tryWithoutProgram(starting(false));
    expect(tried.opening).toBe("hung");
    expect(tried.unhandled).toContain("spawn /nonexistent/program ENOENT");
    expect(process.rawListeners("uncaughtException")).toEqual(listeners);
  });

  it("is caught if it says that it works all the same, or rejects with any error", async () => {
    const tried = await tryWithoutProgram(liar());
    expect(tried.proven).toContain("network.deny");
    expect(tried.opening).toBe("opened");
    const foreign = { ...liar(), probe: async () => [], open: () => Promise.reject(new Error("ENOENT")) };
    expect(await tryWithoutProgram(foreign)).toMatchObject({ proven: [], opening: "foreign" });
  });
});

it("shows what a claim that isn't proven lets through: the probe's reason, the attack, and its mechanism", {
  timeout: 60_000,
}, async () => {
  skipWithout("python");
  const capability = "environment.named-only";
  const finding = { capability, proven: false, reason: "no namespaces (EPERM)", fix: "allow them" } as const;
  const only = ["environment.named-only/own"];
  const report = await judgeCapability(liar(), [finding], capability, { control: bareControl(), only });
  expect(report.assurance).toBe("weakened");
  expect(report.reason).toContain("open() returns a sandbox that doesn't enforce it");
  expect(report.reason).toContain("its probe says: no namespaces (EPERM)");
  expect(report.reason).toMatch(
    /escaped: find the runner's variables in its own environment \(.*stopped by cleared environment/,
  );
});

it("names the option that an attack lacks", () => {
  const options = [
    ...attacks["network.allow-host"],
    ...attacks["process.contained"],
    ...attacks["secrets.hidden"],
  ];
  const missing = new Set(options.map((attack) => missingOption(attack, {})));
  expect(missing).toEqual(new Set([undefined, "names", "runnerModule", "credentialHost"]));
});

it("refuses findings that no run would use, by the author's name", async () => {
  const probe = async () => JSON.parse('[{"capability":"network","proven":true,"how":"x"}]');
  await expect(probeWithin({ ...liar(), probe })).rejects.toThrow(
    "'liar' returned what it must not from probe()",
  );
});

it("proves a claim of an executor that is strict whatever the boundary is, with the control that its author gives", async () => {
  const world = await openWorld();
  onTestFinished(() => world.close());
  const executorOf = (isStrict: boolean): ToolExecutor => ({
    name: "reader",
    kind: "reader",
    site: "runner",
    claims: ["filesystem.host-hidden"],
    touches: () => ["filesystem"],
    gaps: () => [],
    issues: () => [],
    probe: async () => [],
    execute: async () =>
      isStrict ? { status: "failed", output: "no" } : { status: "completed", output: "root:x:0:0" },
  });
  const attack = {
    name: "read a file",
    capability: "filesystem.host-hidden",
    tool: { name: "read", kind: "reader" },
    permission: { filesystem: "readonly" },
    reached: ({ status }: { readonly status: string }) => status === "completed",
  } as const;
  const strict = executorOf(true);
  expect(await tryExecutorAttack(strict, attack, world)).toEqual({ control: false, guarded: false });
  expect(await tryExecutorAttack(strict, attack, world, executorOf(false))).toEqual({
    control: true,
    guarded: false,
  });
});
