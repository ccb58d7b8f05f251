import type { Store } from "@ambit/durable/store";
import { expect, it } from "vitest";
import { ending, newRun } from "../../store/samples.js";

/** Runs that wait for any replica. */
export function describeQueue(opened: () => Promise<Store>): void {
  it("gives a queued run to one replica, with its sealed request, which is then deleted", async () => {
    const [one, two] = [await opened(), await opened()];
    await one.create(newRun("q", { state: "queued", sealedRequest: "sealed" }));
    await expect.poll(() => two.nextQueued("two", 5)).toEqual(["q"]);
    const claims = await Promise.all([one.claim("q", "one"), two.claim("q", "two")]);
    expect(claims.filter((claim) => claim !== undefined)).toEqual([{ fence: 2, sealedRequest: "sealed" }]);
    expect(await one.claim("q", "one")).toBeUndefined();
    expect((await one.get("q"))?.state).toBe("running");
  });

  it("leaves queued runs of the excluded projects in the queue", async () => {
    const store = await opened();
    for (const project of ["p", "q", undefined])
      await store.create(newRun(`of-${project}`, { project, state: "queued", sealedRequest: "sealed" }));
    await expect.poll(() => store.nextQueued("one", 5, ["p", null])).toEqual(["of-q"]);
    expect(await store.nextQueued("one", 5, ["p", "q", null])).toEqual([]);
    const rest = await store.nextQueued("one", 5, ["q"]);
    expect(rest.toSorted()).toEqual(["of-p", "of-undefined"]);
  });

  it("leaves a queued run in the queue while another run has its session", async () => {
    const store = await opened();
    const ofSession = { project: "p", session: "s" };
    await store.create(newRun("first", { ...ofSession, state: "running" }));
    const waiting = { state: "queued", sealedRequest: "sealed" } as const;
    await store.create(newRun("second", { ...ofSession, ...waiting }));
    await store.create(newRun("of-no-project", { session: "s", ...waiting }));
    await store.create(newRun("of-no-session", waiting));
    const others = ["of-no-project", "of-no-session"];
    await expect.poll(async () => (await store.nextQueued("one", 5)).toSorted()).toEqual(others);
    await store.finish("first", 1, { ...ending(), session: "s" });
    expect((await store.nextQueued("one", 5)).toSorted()).toEqual([...others, "second"]);
  });

  it("leaves a queued run of a session that another replica keeps to that one", async () => {
    const [one, two] = [await opened(), await opened()];
    await one.renew("one", "http://one", 60_000);
    await two.renew("two", "http://two", 60_000);
    const place = { project: "p", session: "s", sandbox: "x", replica: "one" };
    await one.holdSession(place);
    const waiting = { state: "queued", sealedRequest: "sealed" } as const;
    await one.create(newRun("of-s", { ...waiting, project: "p", session: "s" }));
    await one.create(newRun("of-q", { ...waiting, project: "q", session: "s" }));
    await expect.poll(async () => (await one.nextQueued("one", 5)).toSorted()).toEqual(["of-q", "of-s"]);
    expect(await two.nextQueued("two", 5)).toEqual(["of-q"]);
    // What is kept of it lets another one continue.
    await one.keepSession(place, 1, "sealed");
    expect((await two.nextQueued("two", 5)).toSorted()).toEqual(["of-q", "of-s"]);
    await one.keepSession(place, 1, undefined);
    expect(await two.nextQueued("two", 5)).toEqual(["of-q"]);
    await one.releaseSession(place);
    expect((await two.nextQueued("two", 5)).toSorted()).toEqual(["of-q", "of-s"]);
  });
}
