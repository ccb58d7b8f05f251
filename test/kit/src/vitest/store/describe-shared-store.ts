import type { Store } from "@ambit/durable/store";
import { describe, expect, it } from "vitest";
import { ending, groupOf, newRun } from "../../store/samples.js";

const question = (id: string) => ({ id, kind: "user_approval", payload: `{"toolName":"${id}"}` });

/** Characters of a run's answers. */
const maxAnswers = 1_000_000;

/** What replicas share in addition to the log and the queue: cancellation, questions, sessions, deliveries. */
export function describeSharedStore(opened: () => Promise<Store>): void {
  it("lets a replica join only where each can read what the others encrypt, and what is stored", async () => {
    const [one, two] = [await opened(), await opened()];
    const [old, next, lost] = ["a".repeat(32), "b".repeat(32), "c".repeat(32)];
    const join = (store: Store, replica: string, readable: readonly [string, ...string[]], more = {}) =>
      store.join(replica, "http://here", 60_000, {
        newest: readable[0],
        readable,
        mayLoseContent: false,
        ...more,
      });
    // At the same moment: one of them is first.
    const both = await Promise.all([join(one, "one", [old]), join(two, "two", [next])]);
    expect(both.toSorted()).toEqual(["joined", "other_replica"]);
    const [[first, second, replica]] = both[0] === "joined" ? [[old, next, "one"]] : [[next, old, "two"]];
    expect(await join(two, "three", [first])).toBe("joined");
    // Each reads the other's, or none joins.
    expect(await join(two, "four", [second, first])).toBe("other_replica");
    expect(await join(two, "four", [second, first], { mayLoseContent: true })).toBe("other_replica");
    // Replaced one by one, by those that read both; then by those that encrypt with the next one.
    await one.leave(replica);
    expect(await join(one, "five", [first, second])).toBe("joined");
    expect(await join(two, "six", [second, first])).toBe("other_replica");
    await two.leave("three");
    expect(await join(two, "six", [second, first])).toBe("joined");
    await one.leave("five");
    expect(await join(one, "seven", [second])).toBe("joined");
    // Alone, with a key that reads nothing of what waits here.
    for (const each of ["six", "seven"]) await one.leave(each);
    await one.create(newRun("waits", { state: "queued", sealedRequest: "sealed" }));
    expect(await join(one, "eight", [lost])).toBe("other_content");
    expect(await join(one, "eight", [lost, second])).toBe("joined");
    await one.leave("eight");
    expect(await join(one, "nine", [old])).toBe("other_content");
    expect(await join(one, "nine", [old], { mayLoseContent: true })).toBe("joined");
  });

  it("ends a session of a dead owner once, and passes its data to one replica only", async () => {
    const [one, two] = [await opened(), await opened()];
    await one.renew("one", "http://one", 60_000);
    const place = { project: "p", session: "s", sandbox: "x", replica: "one" };
    await one.holdSession(place);
    await one.keepSession(place, 1, "sealed");
    expect(await two.endSession(place)).toBeUndefined();
    await one.supersede("one", "another");
    for (const other of [
      { ...place, project: undefined },
      { ...place, session: "t" },
    ])
      expect(await two.endSession(other)).toBeUndefined();
    const ended = await Promise.all([one.endSession(place), two.endSession(place)]);
    expect(ended.filter((end) => end !== undefined)).toEqual([{ fence: 2, handover: "sealed" }]);
    // Its owner was only away for a while: what it had counts no more.
    await one.renew("one", "http://one", 60_000);
    expect(await one.keepSession(place, 1, "later")).toBe("fenced");
    expect(await one.holdSession(place)).toEqual({ held: true, fence: 3 });
  });

  it("keeps the larger figures of what a session has used, and a price that was unknown once", async () => {
    const [one, two] = [await opened(), await opened()];
    const use = { requests: 2, input: 100, cached: 10, output: 50, usd: 0.25, isPriced: true, granted: 0 };
    const of = { project: "p", session: "s" };
    const more = { ...use, requests: 1, output: 70, usd: 0.125, granted: 1 };
    await Promise.all([one.keepUse(of, use), two.keepUse(of, more)]);
    const nothing = { requests: 0, input: 0, cached: 0, output: 0, usd: 0, isPriced: true, granted: 0 };
    const larger = { ...use, output: 70, granted: 1 };
    expect(await two.keepUse(of, nothing)).toEqual(larger);
    expect(await one.keepUse(of, { ...nothing, isPriced: false })).toEqual({ ...larger, isPriced: false });
    expect(await one.keepUse(of, use)).toEqual({ ...larger, isPriced: false });
    for (const other of [
      { ...of, project: undefined },
      { ...of, session: "t" },
    ])
      expect(await one.keepUse(other, nothing)).toEqual(nothing);
  });

  it("lists runs by project, session and state, in pages, the newest first", async () => {
    const store = await opened();
    for (const [index, project] of ["p", undefined, "p", "p"].entries())
      await store.create(newRun(`r${index}`, { project, session: index < 3 ? "s" : "t" }));
    await store.finish("r0", 1, ending());
    const ids = async (query: object) => (await store.list({ limit: 10, ...query })).map(({ id }) => id);
    expect(await ids({ project: "p" })).toEqual(["r3", "r2", "r0"]);
    expect(await ids({ project: null })).toEqual(["r1"]);
    expect(await ids({ session: "s", project: "p" })).toEqual(["r2", "r0"]);
    expect(await ids({ state: "ended" })).toEqual(["r0"]);
    expect(await ids({ limit: 2 })).toEqual(["r3", "r2"]);
    expect(await ids({ limit: 2, after: "r2" })).toEqual(["r1", "r0"]);
    expect(await ids({ project: "p", after: "r2" })).toEqual(["r0"]);
  });

  it("begins no page after a run or question of another project, as if there were none", async () => {
    const store = await opened();
    for (const [index, project] of ["p", "q", "p"].entries()) {
      const id = `r${index}`;
      await store.create(newRun(id, { project }));
      await store.append({ ...groupOf(id, 1, 1), asked: [question(`q${index}`)] });
    }
    const ids = async (query: { project?: string | null; after: string }) => {
      const { after } = query;
      const runs = await store.list({ ...query, limit: 10, after: `r${after}` });
      const questions = await store.interactions({ ...query, limit: 10, after: `q${after}` });
      return [...runs, ...questions].map(({ id }) => id);
    };
    expect(await ids({ after: "1" })).toEqual(["r0", "q0"]);
    expect(await ids({ project: "p", after: "2" })).toEqual(["r0", "q0"]);
    for (const after of ["1", "none"]) expect(await ids({ project: "p", after })).toEqual([]);
    expect(await ids({ project: null, after: "2" })).toEqual([]);
  });

  it("gives lists in pieces that fit into memory: no results of runs, and payloads up to a size", async () => {
    const store = await opened();
    const large = "x".repeat(100_000);
    await store.create(newRun("r"));
    const payload = JSON.stringify({ large });
    const asked = ["a", "b", "c"].map((id) => ({ id, kind: "user_approval", payload }));
    await store.append({ ...groupOf("r", 1, 1), asked });
    await store.finish("r", 1, { ...ending(), result: JSON.stringify({ large }), outcome: "paused" });
    expect((await store.list({ limit: 5 })).map(({ id, result }) => [id, result])).toEqual([
      ["r", undefined],
    ]);
    expect((await store.get("r"))?.result).toContain(large);
    const ids = async (query: object) =>
      (await store.interactions({ limit: 5, ...query })).map(({ id }) => id);
    expect(await ids({})).toEqual(["c", "b", "a"]);
    expect(await ids({ maxCharacters: 150_000 })).toEqual(["c", "b"]);
    expect(await ids({ maxCharacters: 1, after: "b" })).toEqual(["a"]);
    expect(await ids({ id: "b" })).toEqual(["b"]);
    await store.answer("b", "given", maxAnswers);
    const [read, bare] = [[], ["payload", "answer"] as const].map((without) =>
      store.interactions({ id: "b", limit: 1, without }),
    );
    expect(await read).toMatchObject([{ id: "b", runId: "r", state: "answered", payload, answer: "given" }]);
    expect(await bare).toEqual([{ ...(await read)?.[0], payload: "", answer: undefined }]);
  });

  it("keeps a run's trace, and what its observers need if it is lost until it ends, out of lists", async () => {
    const store = await opened();
    const trace = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    await store.renew("one", "http://one", 60_000);
    await store.create(newRun("r", { trace, sealedRecovery: "sealed", sealedCopy: "copy" }));
    await store.create(newRun("none"));
    expect(await store.get("r")).toMatchObject({
      trace,
      sealedRecovery: "sealed",
      sealedCopy: "copy",
      size: 4,
    });
    expect(await store.get("none")).toMatchObject({ trace: undefined, sealedRecovery: undefined });
    const [listed] = await store.list({ id: "r", limit: 1 });
    expect(listed).toMatchObject({ trace, sealedRecovery: undefined, sealedCopy: undefined });
    await store.supersede("one", "another");
    const abandoned = (await store.abandoned()).find(({ id }) => id === "r");
    expect(abandoned).toMatchObject({ trace, sealedRecovery: "sealed" });
    await store.finish("r", 1, ending());
    expect(await store.get("r")).toMatchObject({ trace, sealedRecovery: undefined, sealedCopy: "copy" });
  });

  it("keeps the same of a queued run, from its owner only, once it is claimed", async () => {
    const store = await opened();
    await store.create(newRun("q", { state: "queued", sealedRequest: "sealed" }));
    const fence = (await store.claim("q", "one"))?.fence ?? 0;
    await store.keepRecovery("q", fence - 1, { trace: "other", sealedRecovery: "other" });
    expect(await store.get("q")).toMatchObject({ trace: undefined, sealedRecovery: undefined });
    await store.keepRecovery("q", fence, { trace: "own", sealedRecovery: "sealed", sealedCopy: "copy" });
    expect(await store.get("q")).toMatchObject({
      trace: "own",
      sealedRecovery: "sealed",
      sealedCopy: "copy",
      size: 4,
    });
  });

  it("tells a run's owner that others want it cancelled, and what they answered", async () => {
    const [owner, other] = [await opened(), await opened()];
    await owner.renew("one", "http://one", 60_000);
    await owner.create(newRun("r"));
    await owner.append({ ...groupOf("r", 1, 1), asked: [question("ask_1"), question("ask_2")] });
    expect(await other.requestCancel("r"), "another replica must be able to cancel the run").toBe(true);
    expect(await other.requestCancel("none"), "a run that doesn't exist must not be cancelled").toBe(false);
    expect((await other.answer("ask_1", '{"approved":true}', maxAnswers))?.state).toBe("answered");
    expect(await owner.renew("one", "http://one", 60_000)).toEqual({
      runs: [{ id: "r", fence: 1, cancelRequested: true }],
      answers: [{ runId: "r", interactionId: "ask_1", answer: '{"approved":true}' }],
    });
  });

  it("keeps questions of a paused run for its session's next turn, and uses each answer once", async () => {
    const [one, two] = [await opened(), await opened()];
    await one.create(newRun("r", { project: "p" }));
    await one.append({ ...groupOf("r", 1, 1), asked: [question("a"), question("b")] });
    await one.finish("r", 1, { ...ending(), session: "turn", outcome: "paused" });
    expect(await two.interactions({ state: "open", project: "p", session: "turn", limit: 10 })).toMatchObject(
      [{ id: "b", runId: "r", kind: "user_approval", payload: '{"toolName":"b"}' }, { id: "a" }],
    );
    expect(await two.answer("a", "1", maxAnswers)).toMatchObject({ state: "answered", answer: "1" });
    expect(await two.answer("a", "2", maxAnswers)).toMatchObject({ state: "answered", answer: "1" });
    for (const answerer of ["anna", "someone who was late"]) await one.nameAnswerer("a", answerer);
    expect(await two.interactions({ id: "a", limit: 1 })).toMatchObject([
      { answerer: "anna", answeredAt: expect.any(Number) },
    ]);
    expect(await two.answer("none", "1", maxAnswers)).toBeUndefined();
    for (const run of ["x", "y"]) await one.create(newRun(run, { project: "p", session: "turn" }));
    const claimed = await Promise.all([one.claimAnswer("a", "x"), two.claimAnswer("a", "y")]);
    expect(claimed.toSorted()).toEqual([false, true]);
    // A claim may be repeated, since its response may be lost.
    expect(await two.claimAnswer("a", "x")).toBe(claimed[0]);
    const user = claimed[0] ? "x" : "y";
    await one.settleAnswer("a", user, { step: "spend" });
    for (const run of ["x", "y"]) expect(await one.claimAnswer("a", run)).toBe(false);
    expect(await one.interactions({ id: "a", limit: 1 })).toMatchObject([
      { state: "used", answer: undefined },
    ]);
  });

  describe("an answer that a run has claimed", () => {
    const claimed = async (kind = "user_approval") => {
      const store = await opened();
      await store.create(newRun("r", { session: "s" }));
      await store.append({ ...groupOf("r", 1, 1), asked: [{ ...question("a"), kind }] });
      await store.finish("r", 1, { ...ending(), session: "s", outcome: "paused" });
      await store.answer("a", "given", maxAnswers);
      await store.create(newRun("next", { session: "s" }));
      expect(await store.claimAnswer("a", "next")).toBe(true);
      const now = async () => (await store.interactions({ id: "a", limit: 1 }))[0];
      return { store, now };
    };

    it("comes back where its call wasn't made, and keeps the outcome where it was", async () => {
      const { store, now } = await claimed();
      expect(await now()).toMatchObject({ state: "claimed", answer: "given" });
      await store.settleAnswer("a", "another", { step: "spend" });
      expect(await now()).toMatchObject({ state: "claimed" });
      await store.settleAnswer("a", "next", { step: "return" });
      expect(await now()).toMatchObject({ state: "answered", answer: "given" });
      expect(await store.claimAnswer("a", "next")).toBe(true);
      await store.settleAnswer("a", "next", { step: "spend", outcome: "result" });
      expect(await now()).toMatchObject({ state: "used", answer: "result" });
      expect(await store.interactions({ session: "s", holds: true, limit: 9 })).toHaveLength(1);
      // A late word of the same run changes nothing.
      await store.settleAnswer("a", "next", { step: "return" });
      await store.dropAnswer("a");
      expect(await now()).toMatchObject({ state: "used", answer: undefined });
      expect(await store.interactions({ session: "s", holds: true, limit: 9 })).toEqual([]);
    });

    it("can't be dropped; any other can, and isn't claimed afterwards", async () => {
      const { store, now } = await claimed();
      await store.dropAnswer("a");
      expect(await now()).toMatchObject({ state: "claimed", answer: "given" });
      await store.settleAnswer("a", "next", { step: "return" });
      await store.dropAnswer("a");
      expect(await now()).toMatchObject({ state: "used", answer: undefined });
      expect(await store.claimAnswer("a", "next")).toBe(false);
    });

    it.each([
      ["user_approval", { state: "unknown", answer: undefined }],
      ["client_tool", { state: "answered", answer: "given" }],
      ["user_input", { state: "answered", answer: "given" }],
    ])("is settled by the end of a run that didn't say: %s", async (kind, then) => {
      const { store, now } = await claimed(kind);
      await store.finish("next", 1, ending());
      expect(await now()).toMatchObject(then);
      // A run that has ended claims nothing.
      expect(await store.claimAnswer("a", "next")).toBe(false);
      await store.create(newRun("third", { session: "s" }));
      expect(await store.claimAnswer("a", "third")).toBe(then.state === "answered");
    });

    it("needs no question here: a request may bring it long after", async () => {
      const store = await opened();
      for (const run of ["r", "other"]) await store.create(newRun(run));
      expect(await store.claimAnswer("ask_gone", "r")).toBe(true);
      await store.settleAnswer("ask_gone", "r", { step: "return" });
      expect(await store.claimAnswer("ask_gone", "other")).toBe(true);
      await store.settleAnswer("ask_gone", "other", { step: "lose" });
      expect(await store.claimAnswer("ask_gone", "r")).toBe(false);
    });
  });

  it("ends a question that its agent withdraws, unless it was answered before", async () => {
    const store = await opened();
    for (const run of ["r", "other"]) await store.create(newRun(run));
    await store.append({ ...groupOf("r", 1, 1), asked: ["a", "b"].map((id) => question(id)) });
    await store.answer("b", "given", maxAnswers);
    const state = async (id: string) => (await store.interactions({ id, limit: 1 }))[0]?.state;
    // Another run can't, nor can one that has lost its run.
    await store.append({ ...groupOf("other", 1, 1), withdrawn: ["a"] });
    await store.append({ ...groupOf("r", 2, 1), fence: 2, withdrawn: ["a"] });
    expect(await state("a")).toBe("open");
    await store.append({ ...groupOf("r", 2, 1), asked: [question("c")], withdrawn: ["a", "b", "c"] });
    expect(await Promise.all(["a", "b", "c"].map(state))).toEqual(["withdrawn", "answered", "withdrawn"]);
    expect(await store.answer("a", "late", maxAnswers)).toMatchObject({ state: "withdrawn" });
    expect(await store.claimAnswer("a", "other")).toBe(false);
    await store.finish("r", 1, { ...ending(), outcome: "paused" });
    expect(await store.interactions({ state: "open", limit: 9 })).toEqual([]);
    expect(await state("a")).toBe("withdrawn");
  });

  it("ends the questions of a run that doesn't pause", async () => {
    const store = await opened();
    await store.create(newRun("r"));
    await store.append({ ...groupOf("r", 1, 1), asked: [question("a")] });
    await store.finish("r", 1, ending());
    expect(await store.interactions({ state: "open", limit: 10 })).toEqual([]);
    expect(await store.interactions({ runId: "r", limit: 10 })).toMatchObject([{ state: "expired" }]);
  });

  it("keeps a run with an open question, or an answer for the next turn, and says how much is too much", async () => {
    const store = await opened();
    for (const id of ["open", "answered", "used", "none"]) {
      await store.create(newRun(id));
      await store.append({
        ...groupOf(id, 1, 1),
        ...(id === "none" ? {} : { asked: [question(`ask_${id}`)] }),
      });
      await store.finish(id, 1, { ...ending(), outcome: "paused" });
    }
    const { size = 0 } = (await store.get("open")) ?? {};
    // What is kept of an answer counts, and once.
    const answer = "1".repeat(100_000);
    for (const given of [answer, answer, `${answer}2`]) await store.answer("ask_answered", given, maxAnswers);
    await store.answer("ask_used", answer, maxAnswers);
    await store.create(newRun("next"));
    await store.claimAnswer("ask_used", "next");
    await store.settleAnswer("ask_used", "next", { step: "spend" });
    await store.finish("next", 1, ending());
    await store.delete("next");
    const ids = async () => (await store.list({ limit: 10 })).map(({ id }) => id).toSorted();
    const kept = { interactionMs: 3_600_000, maxSize: 1_000_000 };
    await expect
      .poll(async () => {
        await store.retain({ ...kept, maxAgeMs: 1 });
        return ids();
      })
      .toEqual(["answered", "open"]);
    expect(await store.retain({ ...kept, maxAgeMs: 3_600_000, maxSize: 1 })).toEqual({
      deleted: 0,
      excess: 2 * (size + 1_024) + answer.length - 1,
    });
    // An answer that no turn has used waits no longer than a question.
    await store.retain({ interactionMs: 0, maxAgeMs: 1, maxSize: 1_000_000 });
    expect(await ids()).toEqual(["open"]);
    expect(await store.retain({ ...kept, maxAgeMs: 3_600_000, maxSize: 1 })).toMatchObject({
      excess: size + 1_024 - 1,
    });
    expect(await store.interactions({ state: "open", limit: 10 })).toMatchObject([{ id: "ask_open" }]);
  });

  it("binds a session to one living replica", async () => {
    const [one, two] = [await opened(), await opened()];
    await one.renew("one", "http://one", 60_000);
    await two.renew("two", "http://two", 60_000);
    const place = { project: "p", session: "s", sandbox: "local" };
    const [first, second] = [
      { held: true, fence: 1 },
      { held: false, address: "http://one" },
    ];
    expect(await one.holdSession({ ...place, replica: "one" })).toEqual(first);
    expect(await one.holdSession({ ...place, replica: "one" })).toEqual(first);
    expect(await two.holdSession({ ...place, replica: "two" })).toEqual(second);
    expect(await two.holdSession({ ...place, project: undefined, replica: "two" })).toEqual(first);
    expect(await two.sessions({ project: "p", limit: 10 })).toMatchObject([
      { session: "s", replica: "one", address: "http://one", project: "p", sandbox: "local" },
    ]);
    await one.leave("one");
    expect(await two.holdSession({ ...place, replica: "two" })).toEqual(first);
    await two.releaseSession({ ...place, replica: "two" });
    expect(await two.sessions({ project: "p", limit: 10 })).toEqual([]);
  });

  it("keeps what is left of a session that has no owner, and knows one whose owner vanished", async () => {
    const [one, two] = [await opened(), await opened()];
    await one.renew("one", "http://one", 60_000);
    await two.renew("two", "http://two", 60_000);
    const place = { project: "p", session: "left", sandbox: "local" };
    await one.holdSession({ ...place, replica: "one" });
    await one.releaseSession({ ...place, replica: "one" }, "sealed");
    expect(await two.sessions({ project: "p", limit: 10 })).toEqual([]);
    // Its own earlier owner has a new hold too.
    expect(await one.holdSession({ ...place, replica: "one" })).toEqual({
      held: true,
      fence: 2,
      handover: "sealed",
    });
    await one.releaseSession({ ...place, replica: "one" }, "again");
    expect(await two.endSession(place)).toEqual({ fence: 3, handover: "again" });

    const vanished = { ...place, session: "vanished" };
    await one.holdSession({ ...vanished, replica: "one" });
    await two.supersede("one", "another");
    const hold = { held: true, fence: 2 };
    expect(await two.holdSession({ ...vanished, replica: "two" })).toEqual({ ...hold, isAbandoned: true });
    expect(await two.holdSession({ ...vanished, replica: "two" })).toEqual(hold);
  });

  it("hands a session's remains over only once its owner is lost", async () => {
    const [one, two] = [await opened(), await opened()];
    await one.renew("one", "http://one", 60_000);
    await two.renew("two", "http://two", 60_000);
    const place = { project: "p", session: "remains", sandbox: "local" };
    const [ofOne, ofTwo] = [
      { ...place, replica: "one" },
      { ...place, replica: "two" },
    ];
    await one.holdSession(ofOne);
    expect(await one.keepSession(ofOne, 1, "sealed", "owner_lost")).toBe("written");
    expect(await two.holdSession(ofTwo)).toMatchObject({ held: false });
    expect(await two.holdSession({ ...ofTwo, project: "other" })).toEqual({ held: true, fence: 1 });
    await two.supersede("one", "another");
    const hold = { held: true, fence: 2, handover: "sealed" };
    expect(await two.holdSession(ofTwo)).toEqual(hold);
    expect(await one.keepSession(ofOne, 1, "late", "owner_lost")).toBe("fenced");
    // Until its new owner has said what it did with it.
    expect(await two.holdSession(ofTwo)).toEqual(hold);
    await two.releaseSession(ofTwo);
    expect(await one.holdSession(ofOne)).toEqual({ held: true, fence: 1 });
  });

  it("hands a session over with its owner's data, but not during a run", async () => {
    const [one, two] = [await opened(), await opened()];
    await one.renew("one", "http://one", 60_000);
    await two.renew("two", "http://two", 60_000);
    const place = { project: "p", session: "s", sandbox: "remote" };
    await one.holdSession({ ...place, replica: "one" });
    await one.create(newRun("r", { project: "p", session: "s" }));
    expect(await one.keepSession({ ...place, replica: "one" }, 1, "sealed")).toBe("written");
    expect(await two.holdSession({ ...place, replica: "two" })).toMatchObject({ held: false });
    await one.finish("r", 1, ending());
    expect(await two.holdSession({ ...place, replica: "two" })).toEqual({
      held: true,
      fence: 2,
      handover: "sealed",
    });
    expect(await one.keepSession({ ...place, replica: "one" }, 1, "late")).toBe("fenced");
    // It waits for its next owner after this one left.
    await two.leave("two");
    expect(await one.holdSession({ ...place, replica: "one" })).toMatchObject({
      fence: 3,
      handover: "sealed",
    });
    expect(await one.retain({ interactionMs: 60_000, maxAgeMs: 60_000, maxSize: 1_000_000 })).toMatchObject({
      deleted: 0,
    });
    expect(await one.sessions({ limit: 10 }), "the session must be listed once").toHaveLength(1);
  });

  it("counts a project's usage over all replicas, and gives its last slot to one of them", async () => {
    const [one, two] = [await opened(), await opened()];
    const run = (id: string, replica: string) => newRun(id, { project: "p", replica });
    const created = await Promise.all([
      one.createWithin(run("a", "one"), { concurrentRuns: 1 }),
      two.createWithin(run("b", "two"), { concurrentRuns: 1 }),
    ]);
    expect(created.toSorted()).toEqual(["over_quota", undefined]);
    const [first] = await one.list({ project: "p", limit: 10 });
    const again = run(first?.id ?? "", first?.replica ?? "");
    expect(await two.createWithin(again, { concurrentRuns: 1 })).toMatchObject({ id: first?.id });
    expect(await two.usage(["other", "p"])).toMatchObject([
      { project: "other", running: 0, begun: 0, usd: 0 },
      { project: "p", running: 1, begun: 1, usd: 0 },
    ]);
    await one.finish(first?.id ?? "", 1, { ...ending(), usd: 0.5 });
    await one.finish(first?.id ?? "", 1, { ...ending(), usd: 0.5 });
    // Its usage outlives the run.
    expect(await one.delete(first?.id ?? ""), "the ended run must be deleted").toBe(true);
    const [used] = await two.usage(["p"]);
    expect(used).toMatchObject({ running: 0, begun: 1, usd: 0.5 });
    expect(used?.minuteLeftMs, "the minute of the quota must not be over yet").toBeGreaterThan(0);
    expect(await two.createWithin(run("c", "two"), { usdPerDay: 0.5 })).toBe("over_quota");
    expect(await two.createWithin(run("c", "two"), { runsPerMinute: 1 })).toBe("over_quota");
    expect(await two.createWithin(run("c", "two"), { runsPerMinute: 2, usdPerDay: 1 })).toBeUndefined();
    // For a queued run as well.
    await one.create(newRun("d", { project: "p", state: "queued", sealedRequest: "sealed" }));
    await one.claim("d", "one");
    expect(await two.usage(["p"])).toMatchObject([{ running: 2, begun: 3 }]);
  });

  it("never exceeds a quota, however many replicas create runs of a project at once", async () => {
    const stores = await Promise.all([1, 2, 3, 4].map(() => opened()));
    for (let round = 0; round < 5; round += 1) {
      const created = await Promise.all(
        stores.map((store, replica) =>
          store.createWithin(newRun(`${round}-${replica}`, { project: "p" }), { concurrentRuns: round + 1 }),
        ),
      );
      expect(
        created.filter((found) => found === undefined),
        "only one of the simultaneous creations with one id may succeed",
      ).toHaveLength(1);
    }
  });

  it("ends the lease of an earlier process at the same address, unless it drains", async () => {
    const store = await opened();
    for (const replica of ["a-1", "b-1"]) {
      await store.renew(replica, "", 60_000);
      await store.create(newRun(replica, { replica }));
    }
    await store.renew("a-draining", "", 60_000);
    await store.create(newRun("a-draining", { replica: "a-draining" }));
    await store.drain("a-draining");
    await store.renew("a-draining", "", 60_000);
    await store.supersede("a-", "a-2");
    expect((await store.abandoned()).map(({ id }) => id)).toEqual(["a-1"]);
  });
}
