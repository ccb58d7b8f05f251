import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FairSlots } from "../../src/lifetime/fair-shares.js";

const never = new AbortController().signal;
const limits = { atOnce: 3, perOwner: 2, waiting: 4 };

/** Lets every promise that can settle do so. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("slots", () => {
  test("one owner gets its limit, and the rest waits in order", async () => {
    const slots = new FairSlots(limits);
    const got: number[] = [];
    const releases: (() => void)[] = [];
    const owner = {};
    for (const index of [0, 1, 2, 3]) {
      void slots.acquire(owner, never).then((release) => {
        got.push(index);
        if (release !== undefined) releases.push(release);
      });
    }
    await settled();
    expect(got).toEqual([0, 1]);
    releases[0]?.();
    // Twice is once.
    releases[0]?.();
    await settled();
    expect(got).toEqual([0, 1, 2]);
  });

  test("a waiter over the limit is rejected at once", async () => {
    const slots = new FairSlots(limits);
    const owner = {};
    for (let index = 0; index < 6; index += 1) void slots.acquire(owner, never);
    expect(await slots.acquire(owner, never)).toBeUndefined();
    expect(await slots.acquire({}, never)).toBeTypeOf("function");
  });

  test("an owner with many waiters is served no sooner than one with a single waiter", async () => {
    const slots = new FairSlots({ atOnce: 1, perOwner: 1, waiting: 200 });
    const order: string[] = [];
    const ask = async (owner: object, name: string) => {
      const release = await slots.acquire(owner, never);
      order.push(name);
      await settled();
      release?.();
    };
    const greedy = {};
    const all = Array.from({ length: 100 }, () => ask(greedy, "greedy"));
    all.push(ask({}, "modest"), ask({}, "modest"));
    await Promise.all(all);
    expect(order.slice(0, 4)).toEqual(["greedy", "greedy", "modest", "modest"]);
  });

  test("an aborted waiter leaves the queue, even at the moment of its turn", async () => {
    const slots = new FairSlots({ atOnce: 1, perOwner: 1, waiting: 9 });
    const release = await slots.acquire({}, never);
    const leaving = new AbortController();
    const left = slots.acquire({}, leaving.signal);
    const next = slots.acquire({}, never);
    release?.();
    leaving.abort(new Error("gone"));
    // Whichever came first: what it has it gives back.
    (await left.catch(() => undefined))?.();
    expect(await next).toBeTypeOf("function");
    await expect(slots.acquire({}, leaving.signal)).rejects.toThrow("gone");
  });

  test("under random use the limits hold, and all slots are free in the end", async () => {
    const steps = fc.array(fc.tuple(fc.nat(2), fc.constantFrom("acquire", "release", "abort")), {
      maxLength: 60,
    });
    await fc.assert(
      fc.asyncProperty(steps, async (made) => {
        const slots = new FairSlots(limits);
        const owners = [{}, {}, {}].map((owner) => ({
          owner,
          held: new Set<() => void>(),
          aborts: new Set<AbortController>(),
        }));
        for (const [index, step] of made) {
          const own = owners[index];
          if (own === undefined) continue;
          if (step === "release") for (const release of [...own.held].slice(0, 1)) release();
          else if (step === "abort") for (const abort of [...own.aborts].slice(0, 1)) abort.abort();
          else {
            const abort = new AbortController();
            own.aborts.add(abort);
            slots.acquire(own.owner, abort.signal).then(
              (release) => {
                own.aborts.delete(abort);
                if (release === undefined) return;
                const held = () => {
                  own.held.delete(held);
                  release();
                };
                own.held.add(held);
              },
              () => own.aborts.delete(abort),
            );
          }
          await settled();
          expect(owners.every(({ held }) => held.size <= limits.perOwner)).toBe(true);
          expect(owners.reduce((sum, { held }) => sum + held.size, 0)).toBeLessThanOrEqual(limits.atOnce);
        }
        for (const { aborts } of owners) for (const abort of [...aborts]) abort.abort();
        await settled();
        for (const { held } of owners) for (const release of [...held]) release();
        const all = await Promise.all([{}, {}, {}].map((owner) => slots.acquire(owner, never)));
        expect(all.every((release) => release !== undefined)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});
