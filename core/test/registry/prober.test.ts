import { proofsOf } from "@ambit/fakes/capabilities";
import { forever } from "@ambit/fakes/harness";
import { recordingLog } from "@ambit/fakes/log";
import { FakeSandboxBackend } from "@ambit/fakes/sandbox-backend";
import { describe, expect, test, vi } from "vitest";
import { PluginBrokeContract } from "../../src/errors.js";
import { evidenceGap } from "../../src/plan/gaps.js";
import type { Finding } from "../../src/plugin/index.js";
import { Prober } from "../../src/registry/registry.js";

describe("probing", () => {
  const claims = ["network.deny", "process.contained"] as const;

  function probing(probe: (signal: AbortSignal) => Promise<readonly Finding[]>, timeoutMs = 5_000) {
    const actor = Object.assign(new FakeSandboxBackend({ claims }), { probe: vi.fn(probe) });
    const log = recordingLog();
    return { actor, log, prober: new Prober({ timeoutMs, maxAgeMs: 60_000, retryMs: 15_000 }, log) };
  }

  test("evidence is reused until its maximum age, and probed again after that or when it was invalidated", async () => {
    vi.useFakeTimers();
    try {
      const { actor, prober } = probing(async () => proofsOf(claims));
      for (let turn = 0; turn < 3; turn += 1) await prober.refresh([actor]);
      expect(actor.probe).toHaveBeenCalledTimes(1);
      vi.setSystemTime(Date.now() + 59_999);
      await prober.refresh([actor]);
      expect(actor.probe).toHaveBeenCalledTimes(1);
      vi.setSystemTime(Date.now() + 1);
      await prober.refresh([actor]);
      expect(actor.probe).toHaveBeenCalledTimes(2);
      prober.invalidate(actor);
      expect(prober.probed(actor).findings.size).toBe(0);
      await prober.refresh([actor]);
      expect(actor.probe).toHaveBeenCalledTimes(3);
    } finally {
      vi.useRealTimers();
    }
  });

  test("evidence that proves nothing is taken again soon: what the actor needs may be back", async () => {
    vi.useFakeTimers();
    try {
      const { actor, prober } = probing(async () => {
        if (actor.probe.mock.calls.length < 2) throw new Error("no engine answers");
        return proofsOf(claims);
      });
      await prober.refresh([actor]);
      vi.setSystemTime(Date.now() + 14_999);
      await prober.refresh([actor]);
      expect(actor.probe).toHaveBeenCalledTimes(1);
      vi.setSystemTime(Date.now() + 1);
      await prober.refresh([actor]);
      expect(actor.probe).toHaveBeenCalledTimes(2);
      vi.setSystemTime(Date.now() + 59_999);
      await prober.refresh([actor]);
      expect(actor.probe).toHaveBeenCalledTimes(2);
    } finally {
      vi.useRealTimers();
    }
  });

  test("two callers share one probe", async () => {
    const { actor, prober } = probing(async () => proofsOf(claims));
    const both = Promise.all([prober.refresh([actor]), prober.refresh([actor])]);
    expect(prober.probing).toBe(true);
    await both;
    expect(prober.probing).toBe(false);
    expect(actor.probe).toHaveBeenCalledTimes(1);
  });

  test("an actor that was invalidated during its probe is probed again", async () => {
    let finish = () => {};
    const { actor, prober } = probing(async () => {
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      return proofsOf(claims);
    });
    const refreshed = prober.refresh([actor]);
    prober.invalidate(actor);
    finish();
    await expect.poll(() => actor.probe.mock.calls.length).toBe(2);
    finish();
    await refreshed;
    expect(prober.probed(actor).findings.get("network.deny")?.proven).toBe(true);
  });

  test("a finding beyond the claims is ignored and logged", async () => {
    const { actor, prober, log } = probing(async () => proofsOf(["network.deny", "secrets.hidden"]));
    await prober.refresh([actor]);
    expect([...prober.probed(actor).findings.keys()]).toEqual(["network.deny"]);
    expect(log.lines).toMatchObject([{ level: "warn", fields: { capability: "secrets.hidden" } }]);
  });

  test("of two contradictory findings, the one without proof counts", async () => {
    const refuted: Finding = { capability: "network.deny", proven: false, reason: "leaks", fix: "none" };
    for (const order of [
      [...proofsOf(claims), refuted],
      [refuted, ...proofsOf(claims)],
    ]) {
      const { actor, prober } = probing(async () => order);
      await prober.refresh([actor]);
      expect(prober.probed(actor).findings.get("network.deny")?.proven).toBe(false);
    }
  });

  test.each<[what: string, probe: () => Promise<readonly Finding[]>, why: string]>([
    ["rejects", () => Promise.reject(new Error("EPERM")), "its probe failed (EPERM)"],
    [
      "throws",
      () => {
        throw new Error("EPERM");
      },
      "its probe failed (EPERM)",
    ],
    ["hangs", forever, "its probe failed (took longer than 30 ms)"],
    [
      "gives no list",
      async () => JSON.parse("null"),
      "its probe failed ('fake' returned what it must not from probe(): the value must be a list, not null)",
    ],
    [
      "gives a half finding",
      async () => JSON.parse('[{"capability":"network.deny","proven":true}]'),
      "returned what it must not from probe(): [0].how is required: a string",
    ],
  ])("a probe that %s proves nothing, and says why", async (_what, probe, why) => {
    const { actor, prober, log } = probing(probe, 30);
    await prober.refresh([actor]);
    const findings = [...prober.probed(actor).findings.values()];
    expect(findings.map(({ capability, proven }) => [capability, proven])).toEqual(
      claims.map((claim) => [claim, false]),
    );
    for (const finding of findings) expect(finding).toMatchObject({ reason: expect.stringContaining(why) });
    expect(log.lines).toHaveLength(1);
  });

  test("a probe that knows what it waited for says so once its time is up, and proves nothing any more", async () => {
    const { actor, prober } = probing(
      (signal) =>
        new Promise((resolve) => {
          const found: readonly Finding[] = [
            { capability: "network.deny", proven: false, reason: "no node takes the pod", fix: "add a node" },
            ...proofsOf(["process.contained"]),
          ];
          signal.addEventListener("abort", () => resolve(found));
        }),
      20,
    );
    await prober.refresh([actor]);
    const { findings } = prober.probed(actor);
    expect(findings.get("network.deny")).toEqual({
      capability: "network.deny",
      proven: false,
      reason: "no node takes the pod (its probe took longer than 20 ms)",
      fix: "add a node, or raise probes.timeoutMs",
    });
    expect(findings.get("process.contained")).toMatchObject({
      proven: false,
      reason: "its probe failed (took longer than 20 ms)",
    });
  });

  test("the probe's signal aborts when its time is up", async () => {
    const seen: AbortSignal[] = [];
    const { actor, prober } = probing((signal) => {
      seen.push(signal);
      return forever();
    }, 20);
    await prober.refresh([actor]);
    expect(seen[0]?.aborted).toBe(true);
    const fix = "try again when this host is less busy, or raise probes.timeoutMs";
    expect(prober.probed(actor).findings.get("network.deny")).toMatchObject({ fix });
  });

  test("a plan that needs findings of a probe that returned none fails by its name", async () => {
    const { actor, prober } = probing(async () => JSON.parse('[{"capability":"network","proven":true}]'));
    await prober.refresh([actor]);
    const probed = prober.probed(actor);
    expect(() => evidenceGap(probed, "network.deny")).toThrow(PluginBrokeContract);
    expect(() => evidenceGap(probed, "network.deny")).toThrow(
      "'fake' returned what it must not from probe()",
    );
  });

  test("a probe whose error nothing handled has failed with it", async () => {
    const began = Promise.withResolvers<void>();
    const { actor, prober } = probing(() => {
      began.resolve();
      return new Promise(() => undefined);
    });
    const refreshed = prober.refresh([actor]);
    await began.promise;
    prober.fail(actor, new Error("spawn ssh ENOENT"));
    await refreshed;
    expect(prober.probed(actor).findings.get("network.deny")).toMatchObject({
      proven: false,
      reason: "its probe failed (spawn ssh ENOENT)",
    });
  });
});
