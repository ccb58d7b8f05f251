import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { type ClockReading, Lease, type LeaseOptions, stopMs, Tenure } from "../src/lease.js";

describe("the time that a replica may act", () => {
  const at = (monotonic: number, sinceBoot = monotonic): ClockReading => ({ monotonic, sinceBoot });

  it("is counted from when a renewal was sent, by whichever clock is further", () => {
    let now = at(0);
    const tenure = new Tenure(1_000, () => now);
    expect(tenure.leftMs).toBeLessThan(0);
    tenure.renewed(at(0));
    now = at(400);
    expect(tenure.leftMs).toBe(600);
    // The machine was suspended.
    now = at(400, 5_400);
    expect(tenure.leftMs).toBe(-4_400);
    tenure.renewed(at(400, 5_400));
    // An answer that was sent before another one, and arrived after it.
    tenure.renewed(at(100, 5_100));
    expect(tenure.leftMs).toBe(1_000);
  });
});

describe("a lease", () => {
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const leaseMs = 1_000;
  const unused = () => Promise.reject(new Error("not called here"));

  function world() {
    const seen = {
      lapses: 0,
      renewals: [] as number[],
      sure: [] as boolean[],
      /** Renewals before each look for runs of lost replicas. */
      looks: [] as number[],
    };
    let answer: () => Promise<void> = async () => {};
    const store = {
      renew: async (_replica: string, _address: string, milliseconds: number) => {
        await answer();
        seen.renewals.push(milliseconds);
        return { runs: [], answers: [] };
      },
      abandoned: async () => {
        seen.looks.push(seen.renewals.length);
        return [];
      },
      takeOver: unused,
      finish: unused,
      drain: async () => {},
      leave: async () => {},
    };
    const options: LeaseOptions = {
      store,
      log,
      leaseMs,
      replica: "one",
      address: "",
      isBusy: () => true,
      onLost: () => {},
      whileHandled: (_id, act) => act(),
      onRenewal: (_renewal, isSure) => void seen.sure.push(isSure),
      onLapse: () => {
        seen.lapses += 1;
      },
    };
    const lease = new Lease(options);
    onTestFinished(() => lease.leave());
    const hang = () => {
      answer = () => new Promise(() => {});
    };
    const recover = () => {
      answer = async () => {};
    };
    return { lease, seen, hang, recover };
  }

  it("gives other replicas a later end than its own", async () => {
    const { lease, seen } = world();
    await lease.take();
    expect(seen.renewals[0]).toBe(leaseMs + stopMs(leaseMs));
  });

  it("lapses once by itself, although no renewal fails, and lets nothing begin until the next renewal", async () => {
    const { lease, seen, hang, recover } = world();
    await lease.take();
    hang();
    await expect.poll(() => seen.lapses, { timeout: 10_000 }).toBe(1);
    expect(lease.isCurrent).toBe(false);
    let began = false;
    const waiting = lease.confirmed(new AbortController().signal).then(() => {
      began = true;
    });
    await sleep(300);
    expect([began, seen.lapses]).toEqual([false, 1]);
    await expect(lease.confirmed(AbortSignal.abort(new Error("cancelled")))).rejects.toThrow("cancelled");
    recover();
    await waiting;
    expect(lease.isCurrent).toBe(true);
    // Its runs may be another replica's.
    expect(seen.sure.at(-1)).toBe(false);
  });

  it("takes no other replica's runs directly after it lapsed: what stopped it may have stopped the others", async () => {
    const { lease, seen, hang, recover } = world();
    await lease.take();
    await expect.poll(() => seen.looks.length, { timeout: 10_000 }).toBeGreaterThan(0);
    hang();
    await expect.poll(() => seen.lapses, { timeout: 10_000 }).toBe(1);
    const [looks, renewals] = [seen.looks.length, seen.renewals.length];
    recover();
    await expect.poll(() => seen.looks.length, { timeout: 10_000 }).toBeGreaterThan(looks);
    expect(seen.looks[looks]).toBeGreaterThan(renewals + 1);
  });
});
