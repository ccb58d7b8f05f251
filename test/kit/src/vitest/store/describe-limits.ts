import type { Store } from "@ambit/durable/store";
import { describe, expect, it } from "vitest";
import { ending, groupOf, newRun } from "../../store/samples.js";

const question = (id: string) => ({ id, kind: "user_approval", payload: `{"toolName":"${id}"}` });

/** What a store counts and adds in one transaction: answers of a run, queued runs, open sessions. */
export function describeLimits(opened: () => Promise<Store>): void {
  it("keeps no more answers of a run than its next turn may read, however many come at once", async () => {
    const [one, two] = [await opened(), await opened()];
    const ids = ["a", "b", "c", "d", "e", "f"];
    for (const run of ["r", "other"]) {
      await one.create(newRun(run, { session: run }));
      const asked = ids.map((id) => question(`${run}-${id}`));
      await one.append({ ...groupOf(run, 1, 1), asked });
      await one.finish(run, 1, { ...ending(), session: run, outcome: "paused" });
    }
    const answer = (store: Store, id: string) => store.answer(id, "x".repeat(40), 100);
    const statesOf = async (run: string) =>
      (await Promise.all(ids.map((id, index) => answer(index % 2 === 0 ? one : two, `${run}-${id}`)))).map(
        (found) => found?.state,
      );
    const states = await statesOf("r");
    expect(
      states.filter((state) => state === "answered"),
      "as many answers as the limit must be taken",
    ).toHaveLength(2);
    expect(
      states.filter((state) => state === "open"),
      "the answers beyond the limit must be refused",
    ).toHaveLength(4);
    expect(
      await one.interactions({ runId: "r", state: "answered", limit: 10 }),
      "the list of answered questions must have each of them",
    ).toHaveLength(2);
    // One that was used makes room; another run's don't count.
    const [used] = await one.interactions({ runId: "r", state: "answered", limit: 1 });
    await one.create(newRun("next", { session: "r" }));
    expect(await one.claimAnswer(used?.id ?? "", "next")).toBe(true);
    const [open] = await one.interactions({ runId: "r", state: "open", limit: 1 });
    expect(await answer(two, open?.id ?? "")).toMatchObject({ state: "answered" });
    expect(await answer(two, "other-a")).toMatchObject({ state: "answered" });
  });

  describe("never queues more than its limits, however many replicas queue runs at once:", () => {
    const stores = () => Promise.all([1, 2, 3, 4].map(() => opened()));
    const waiting = (id: string, project: string | undefined, bytes = 40) =>
      newRun(id, { project, state: "queued", sealedRequest: "x".repeat(bytes) });
    const attempts = (round: number) => Array.from({ length: 8 }, (_, index) => `${round}-${index}`);

    it.each([
      ["places", { queuedRuns: 5, queuedBytes: 10_000 }, undefined, 5],
      ["bytes", { queuedRuns: 100, queuedBytes: 200 }, undefined, 5],
      ["a project's share of places", { queuedRuns: 8, queuedBytes: 10_000 }, "p", 4],
      ["a project's share of bytes", { queuedRuns: 100, queuedBytes: 320 }, "p", 4],
      ["neither", { queuedRuns: 100, queuedBytes: 10_000 }, "p", 16],
    ] as const)("%s", async (_what, limits, project, most) => {
      const all = await stores();
      const queued = await Promise.all(
        all.flatMap((store, index) =>
          index < 2 ? attempts(index).map((id) => store.createQueued(waiting(id, project), limits)) : [],
        ),
      );
      expect(
        queued.filter((found) => found === undefined),
        "the queue must take as many runs as its limit",
      ).toHaveLength(most);
      expect(
        queued.filter((found) => found === "queue_full"),
        "the queue must refuse the runs beyond its limit",
      ).toHaveLength(16 - most);
      expect(await all[3]?.backlog()).toMatchObject({ queuedRuns: most, queuedBytes: most * 40 });
    });

    it("what a claim takes out has room again, and a run that is queued already is found", async () => {
      const [one, two] = [await opened(), await opened()];
      const limits = { queuedRuns: 1, queuedBytes: 40 };
      expect(await one.createQueued(waiting("a", undefined), limits)).toBeUndefined();
      expect(await two.createQueued(waiting("b", undefined), limits)).toBe("queue_full");
      expect(await two.createQueued(waiting("a", undefined), limits)).toMatchObject({ id: "a" });
      await two.claim("a", "two");
      expect(await one.createQueued(waiting("c", undefined, 41), limits)).toBe("queue_full");
      expect(await one.createQueued(waiting("c", undefined), limits)).toBeUndefined();
    });
  });

  it("never opens more sessions of a project than it may, however many replicas do so at once", async () => {
    const [one, two] = [await opened(), await opened()];
    await one.renew("one", "http://one", 60_000);
    await two.renew("two", "http://two", 60_000);
    const hold = (session: string, replica: "one" | "two", maxOpen?: number) =>
      (replica === "one" ? one : two).holdSession({ project: "p", session, replica, sandbox: "x" }, maxOpen);
    const held = await Promise.all(
      Array.from({ length: 12 }, (_, index) => hold(`s${index}`, index % 2 === 0 ? "one" : "two", 3)),
    );
    expect(
      held.filter((found) => found === "over_quota"),
      "the runs beyond the quota must be refused",
    ).toHaveLength(9);
    const open = await one.sessions({ project: "p", limit: 20 });
    expect(open, "as many runs as the quota must be open").toHaveLength(3);
    // One that is open goes on.
    const [{ session, replica } = { session: "", replica: "" }] = open;
    expect(await hold(session, replica === "one" ? "one" : "two", 3)).toMatchObject({ held: true });
    expect(await hold("other", "one", 3)).toBe("over_quota");
    expect(await two.holdSession({ project: "q", session, replica: "two", sandbox: "x" }, 1)).toMatchObject({
      held: true,
    });
    expect(await hold("unlimited", "one")).toMatchObject({ held: true });
    await one.releaseSession({ project: "p", session: "unlimited", replica: "one", sandbox: "x" });
    const place = { project: "p", session, replica, sandbox: "x" };
    await one.releaseSession(place);
    expect(await hold("other", "one", 3)).toMatchObject({ held: true });
  });
}
