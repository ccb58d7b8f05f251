import type { NewDelivery, RunEnd, Store } from "@ambit/durable/store";
import { expect, it } from "vitest";
import { ending, groupOf, newRun, numbersOf } from "../../store/samples.js";

const webhook = { target: "sealed", host: "example.com", events: ["run.finished"] };

function message(id: string, more: Partial<NewDelivery> = {}): NewDelivery {
  return { id, target: "sealed", host: "example.com", event: "run.finished", body: "{}", ...more };
}

/** Messages for webhooks, written together with their subject, and questions that expire. */
export function describeDeliveries(opened: () => Promise<Store>): void {
  const ended = async (store: Store, id: string, project?: string, delivery = message(`of-${id}`)) => {
    await store.create(newRun(id, { webhook, project }));
    await store.finish(id, 1, { ...ending(), delivery });
  };

  it("stores a message together with its events or result, or alone", async () => {
    const store = await opened();
    await store.create(newRun("r", { project: "p", webhook }));
    expect((await store.get("r"))?.webhook).toEqual(webhook);
    const asking = { ...groupOf("r", 1, 1), deliveries: [message("m1", { event: "interaction.requested" })] };
    expect(await store.append(asking)).toBe("written");
    expect(await store.append(asking)).toBe("written");
    const fenced = { ...groupOf("r", 2, 1, 7), deliveries: [message("m2")] };
    expect(await store.append(fenced)).toBe("fenced");
    expect(await store.finish("r", 7, { ...ending(), delivery: message("m3") })).toBe("fenced");
    for (let attempt = 0; attempt < 2; attempt += 1)
      expect(await store.finish("r", 1, { ...ending(), delivery: message("m4") })).toBe("written");
    const found = await store.deliveries({ runId: "r", limit: 10 });
    expect(found.map(({ id }) => id).toSorted()).toEqual(["m1", "m4"]);
    expect(found[0]).toMatchObject({ runId: "r", project: "p", state: "pending", attempts: 0 });
    expect(await store.deliveries({ runId: "another", limit: 10 })).toEqual([]);
    expect(await store.delete("r"), "the ended run must be deleted").toBe(true);
    expect(await store.deliveries({ runId: "r", limit: 10 })).toEqual([]);
    expect(await store.takeDeliveries(5, 60_000)).toEqual([]);
  });

  it("adds one message for a run's end, whatever ends it, and however often", async () => {
    const [one, two] = [await opened(), await opened()];
    const count = (store: Store) => store.deliveries({ runId: "r", limit: 20 });
    await one.create(newRun("r", { project: "p", webhook, session: "s" }));
    const question = { id: "q", kind: "user_input", payload: "{}" };
    await one.append({ ...groupOf("r", 1, 1), asked: [question] });
    await one.createWithin(newRun("other", { project: "p" }), { usdPerDay: 100 });
    // As when a connection is held and heals: the run's own end, and those that were made up for it meanwhile.
    const ends = Array.from({ length: 6 }, (_, index) => {
      const end: RunEnd = { ...ending(), outcome: "paused", usd: 1, delivery: message(`end-${index}`) };
      return [one, two][index % 2]?.finish("r", 1, end);
    });
    expect(await Promise.all(ends)).toEqual(ends.map(() => "written"));
    const late = { ...ending(), delivery: message("late", { event: "run.failed" }), usd: 1 };
    expect(await two.finish("r", 1, late)).toBe("written");
    expect(await two.finish("r", 2, late)).toBe("fenced");
    expect(await count(one)).toHaveLength(1);
    // Nor did a later end change anything else: what the first one left open, and what it counted.
    expect(await one.interactions({ runId: "r", limit: 5 })).toMatchObject([{ id: "q", state: "open" }]);
    expect((await one.usage(["p"]))[0]).toMatchObject({ usd: 1 });
    // Another run with its id has a message of its own.
    expect(await one.delete("r")).toBe(true);
    await ended(two, "r");
    expect((await count(two)).map(({ id }) => id)).toEqual(["of-r"]);
  });

  it("gives a message to one sender at a time until it is settled", async () => {
    const [one, two] = [await opened(), await opened()];
    await ended(one, "r");
    const taken = (await Promise.all([one.takeDeliveries(5, 60_000), two.takeDeliveries(5, 60_000)])).flat();
    expect(taken).toMatchObject([{ ...message("of-r"), attempts: 1, state: "pending" }]);
    await one.settleDelivery("of-r", 1, { state: "pending", error: "HTTP 500", status: 500 });
    expect(await two.takeDeliveries(5, 60_000)).toMatchObject([
      { attempts: 2, error: "HTTP 500", status: 500 },
    ]);
    // The outcome of an earlier attempt no longer counts.
    await one.settleDelivery("of-r", 1, { state: "failed", error: "too late" });
    expect(await one.deliveries({ runId: "r", limit: 5 }), "the run must have one message").toMatchObject([
      { state: "pending", error: "HTTP 500" },
    ]);
    await two.settleDelivery("of-r", 2, { state: "failed", error: "HTTP 410", status: 410 });
    expect(await one.takeDeliveries(5, 0)).toEqual([]);
    expect(await one.deliveries({ runId: "r", limit: 5 }), "the run must have one message").toMatchObject([
      { state: "failed", status: 410 },
    ]);
    // Unless it was delivered, and stays so.
    await one.settleDelivery("of-r", 1, { state: "delivered", status: 204 });
    await one.settleDelivery("of-r", 2, { state: "pending" });
    expect(await one.deliveries({ runId: "r", limit: 5 }), "the run must have one message").toMatchObject([
      { state: "delivered", status: 204 },
    ]);
  });

  it("makes a message due again, with what it had, for its own project", async () => {
    const store = await opened();
    await ended(store, "r", "p");
    await store.takeDeliveries(5, 60_000);
    await store.settleDelivery("of-r", 1, { state: "failed", error: "HTTP 500", status: 500 });
    for (const project of ["q", null]) expect(await store.redeliver("of-r", project)).toBeUndefined();
    expect(await store.redeliver("another")).toBeUndefined();
    expect(await store.takeDeliveries(5, 60_000)).toEqual([]);
    const again = { ...message("of-r"), state: "pending", attempts: 1, earlierAttempts: 1 };
    expect(await store.redeliver("of-r", "p")).toMatchObject(again);
    expect(await store.takeDeliveries(5, 60_000)).toMatchObject([{ ...again, attempts: 2 }]);
    // What the attempt before says now counts no more; nor does a second request end the one under way.
    await store.settleDelivery("of-r", 1, { state: "failed" });
    expect(await store.redeliver("of-r")).toMatchObject({
      state: "pending",
      attempts: 2,
      earlierAttempts: 2,
    });
    await store.settleDelivery("of-r", 2, { state: "delivered" });
    expect(await store.takeDeliveries(5, 0)).toEqual([]);
    expect(await store.redeliver("of-r")).toMatchObject({ state: "pending" });
  });

  it("lists messages by state and run, page by page, and counts what waits", async () => {
    const store = await opened();
    await ended(store, "a", "p");
    await ended(store, "b", "q");
    await store.create(newRun("c", { state: "queued", sealedRequest: "sealed" }));
    const [first] = await store.takeDeliveries(1, 60_000);
    await store.settleDelivery(first?.id ?? "", 1, { state: "failed" });
    const ids = async (query: object) => (await store.deliveries({ limit: 5, ...query })).map(({ id }) => id);
    const all = await ids({});
    expect(all.toSorted()).toEqual(["of-a", "of-b"]);
    expect([await ids({ limit: 1 }), await ids({ after: all[0] })]).toEqual([[all[0]], [all[1]]]);
    // Another project's id begins no page.
    expect(await ids({ project: all[1]?.at(-1) === "a" ? "p" : "q", after: all[0] })).toEqual([]);
    expect([await ids({ project: "p" }), await ids({ project: null })]).toEqual([["of-a"], []]);
    expect([await ids({ state: "failed" }), await ids({ runId: "a" })]).toEqual([[first?.id], ["of-a"]]);
    expect(await store.backlog()).toEqual({
      queuedRuns: 1,
      queuedBytes: "sealed".length,
      pendingDeliveries: 1,
      failedDeliveries: 1,
    });
    const [ofP, ofQ] = [await store.backlog("p"), await store.backlog("q")];
    expect(
      ofP.pendingDeliveries + ofQ.pendingDeliveries,
      "one message must be pending, in the project that it belongs to",
    ).toBe(1);
    expect([ofP, await store.backlog(null)]).toMatchObject([
      { queuedRuns: 0, queuedBytes: 0 },
      { queuedRuns: 1, queuedBytes: "sealed".length },
    ]);
  });

  it("lists messages without their texts, which could fill the memory", async () => {
    const store = await opened();
    await ended(store, "a", "p", message("large", { body: "x".repeat(10_000) }));
    expect(await store.deliveries({ limit: 5 })).toMatchObject([{ id: "large", body: "" }]);
    expect(
      (await store.takeDeliveries(5, 60_000))[0]?.body,
      "a large message must be delivered whole",
    ).toHaveLength(10_000);
  });

  it("gives questions that expire in pages of so many characters, the oldest first, and never an empty one", async () => {
    const store = await opened();
    await store.create(newRun("r"));
    for (const [index, id] of ["a", "b", "c"].entries()) {
      const asked = [{ id, kind: "user_approval", payload: JSON.stringify({ toolName: "x".repeat(1_000) }) }];
      await store.append({ ...groupOf("r", index + 1, 1), asked });
    }
    await store.finish("r", 1, { ...ending(), session: "s", outcome: "paused" });
    const ids = async (maxCharacters: number) => (await store.expiring(1, maxCharacters)).map(({ id }) => id);
    await expect.poll(() => ids(1_000_000)).toHaveLength(3);
    const all = await ids(1_000_000);
    expect([await ids(1), await ids(1_100)]).toEqual([all.slice(0, 1), all.slice(0, 2)]);
  });

  it("returns due messages, excluding the named hosts and projects", async () => {
    const store = await opened();
    await ended(store, "a", "p", message("a", { host: "one" }));
    await ended(store, "b", "q", message("b", { host: "two" }));
    await ended(store, "c", undefined, message("c", { host: "two" }));
    const ids = async (hosts: readonly string[], projects: readonly string[]) =>
      (await store.takeDeliveries(5, 0, { hosts, projects })).map(({ id }) => id).toSorted();
    expect(await ids(["one"], [])).toEqual(["b", "c"]);
    expect(await ids([], ["p", "q"])).toEqual(["c"]);
    expect(await ids(["two"], ["p"])).toEqual([]);
    await store.settleDelivery("a", 0, { state: "pending", retryInMs: 60_000 });
    expect(await ids([], [])).toEqual(["b", "c"]);
  });

  it("ends an open question of an ended run once, with an event after the result's number", async () => {
    const [one, two] = [await opened(), await opened()];
    for (const id of ["r", "running"]) {
      await one.create(newRun(id, { webhook }));
      const question = { id: `of-${id}`, kind: "user_approval", payload: "{}" };
      await one.append({ ...groupOf(id, 1, 2), asked: [question] });
    }
    await one.finish("r", 1, { ...ending(), session: "s", outcome: "paused" });
    expect(await one.expiring(60_000, 1_000)).toEqual([]);
    await expect.poll(async () => (await one.expiring(1, 1_000)).map(({ id }) => id)).toEqual(["of-r"]);
    const [question] = await one.expiring(1, 1_000);
    if (question === undefined) throw new Error("no question expires");
    const expiry = (id: string) => ({ text: '{"n":3}\n{"n":4}\n', deliveries: [message(id)] });
    const expired = await Promise.all([
      one.expire(question, expiry("m1")),
      two.expire(question, expiry("m2")),
    ]);
    expect(expired.toSorted()).toEqual([false, true]);
    expect(await one.expiring(1, 1_000)).toEqual([]);
    expect(await one.answer("of-r", "1", 1_000)).toMatchObject({ state: "expired" });
    expect(await numbersOf(one, "r")).toEqual([1, 2, 3, 4]);
    expect(await one.read("r", 2, 1_000)).toEqual([{ first: 3, count: 2, text: '{"n":3}\n{"n":4}\n' }]);
    expect(await one.get("r")).toMatchObject({ state: "ended", events: 4 });
    expect(await one.deliveries({ runId: "r", limit: 5 }), "the run must have one message").toHaveLength(1);
  });
}
