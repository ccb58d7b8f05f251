import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { RunQuery, Store } from "@ambit/durable/store";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ending, groupOf, newRun, numbersOf, upTo } from "../store/samples.js";
import { openStore, type StoreRig } from "../store/store-rig.js";
import { describeDeliveries } from "./store/describe-deliveries.js";
import { describeLimits } from "./store/describe-limits.js";
import { describeQueue } from "./store/describe-queue.js";
import { describeSharedStore } from "./store/describe-shared-store.js";

/** Number of events in the test with many; soaks use a million. */
const manyEvents = process.env.AMBIT_SOAK === undefined ? 20_000 : 1_000_000;

/**
 * The requirements on a store, as a suite: the log with its fences, two writers, crashes, a full disk, lost
 * connections, migrations, leases, questions, retention.
 *
 * @param makeRig makes an empty database, a separate one for each test.
 */
export function describeStore(name: string, makeRig: () => Promise<StoreRig>): void {
  describe(`store ${name}`, () => {
    let rig: StoreRig;
    const open: Store[] = [];
    const opened = async () => {
      const store = await openStore(rig);
      open.push(store);
      return store;
    };

    beforeEach(async () => {
      rig = await makeRig();
    });
    afterEach(async () => {
      await Promise.all(open.splice(0).map((store) => store.close()));
      await rig.close();
    });

    it("keeps a run, its events in groups and its one result, also after it is reopened", async () => {
      const store = await opened();
      const announced = { count: 1, text: groupOf("r", 1, 1).text };
      expect(await store.create(newRun("r", { project: "p", session: "s", announced }))).toBeUndefined();
      expect(await store.append(groupOf("r", 1, 1))).toBe("written");
      expect(await store.append(groupOf("r", 2, 2))).toBe("written");
      expect(await store.append(groupOf("r", 4, 2))).toBe("written");
      expect(await store.finish("r", 1, ending('{"ok":true}'))).toBe("written");
      await store.close();
      const again = await opened();
      expect(await again.get("r")).toMatchObject({
        id: "r",
        project: "p",
        session: "s",
        state: "ended",
        events: 5,
        result: '{"ok":true}',
        harness: "demo",
        sandbox: "local",
        cancelRequested: false,
      });
      expect(await numbersOf(again, "r")).toEqual(upTo(5));
      expect(await numbersOf(again, "r", 4)).toEqual([5]);
      expect(await again.read("r", 5, 100)).toEqual([]);
      expect(await again.get("another")).toBeUndefined();
    });

    it("lists runs by what they came to, their agent and their sandbox", async () => {
      const store = await opened();
      const outcomes = ["completed", "paused", "cancelled", "failed"] as const;
      for (const [index, outcome] of [...outcomes, ...outcomes].entries()) {
        const [harness, sandbox] = index < 4 ? ["demo", "local"] : ["other", "docker"];
        await store.create(newRun(`r${index}`, { project: index < 4 ? "p" : undefined, harness, sandbox }));
        const end = { ...ending(), outcome, summary: `{"stopReason":"${index}"}` };
        expect(await store.finish(`r${index}`, 1, end)).toBe("written");
      }
      await store.create(newRun("running", { project: "p" }));
      const ids = async (query: Omit<RunQuery, "limit">) =>
        (await store.list({ ...query, limit: 10 })).map(({ id }) => id);
      expect(await ids({ outcome: "failed" })).toEqual(["r7", "r3"]);
      expect(await ids({ outcome: "failed", project: "p" })).toEqual(["r3"]);
      expect(await ids({ outcome: "paused", after: "r5" })).toEqual(["r1"]);
      expect(await ids({ harness: "other" })).toEqual(["r7", "r6", "r5", "r4"]);
      expect(await ids({ sandbox: "local", outcome: "cancelled" })).toEqual(["r2"]);
      expect(await store.list({ outcome: "failed", limit: 1 })).toMatchObject([
        { outcome: "failed", summary: '{"stopReason":"7"}', result: undefined },
      ]);
      await store.append({
        ...groupOf("running", 1, 1),
        asked: [{ id: "q", kind: "user_input", payload: "{}" }],
      });
      expect(await store.list({ asking: true, limit: 5 })).toMatchObject([
        { id: "running", openQuestions: 1 },
      ]);
      expect(await store.get("running")).toMatchObject({ openQuestions: 1, outcome: undefined });
    });

    it("counts once what a run used, by day, project, agent and model, and keeps it when the run is deleted", async () => {
      const [one, two] = [await opened(), await opened()];
      await one.create(newRun("a", { project: "p", harness: "claude" }));
      await two.create(newRun("b", { project: "p", harness: "codex" }));
      await two.create(newRun("c"));
      const end = { ...ending(), usd: 0.5, inputTokens: 100, outputTokens: 10, model: "large" };
      // As after a response that was lost, and by a replica that took the run for its own.
      for (const [store, fence] of [
        [one, 1],
        [two, 1],
        [two, 2],
      ] as const)
        await store.finish("a", fence, end);
      await two.finish("b", 1, { ...end, outcome: "failed", model: "small" });
      await one.finish("c", 1, ending());
      expect(await one.delete("a")).toBe(true);
      const none = {
        completed: 0,
        paused: 0,
        cancelled: 0,
        failed: 0,
        inputTokens: 0,
        outputTokens: 0,
        usd: 0,
      };
      const used = { inputTokens: 100, outputTokens: 10, usd: 0.5, sandboxMs: expect.any(Number) };
      const ofA = { ...none, ...used, completed: 1 };
      const ofB = { ...none, ...used, failed: 1 };
      const ofC = { ...none, completed: 1, sandboxMs: expect.any(Number) };
      const days = { from: "2000-01-01", to: "2999-12-31" };
      const doubled = { ...used, inputTokens: 200, outputTokens: 20, usd: 1 };
      expect(await two.tallies({ ...days, by: "model" })).toEqual({
        groups: [
          { ...ofC, key: undefined },
          { ...ofA, key: "large" },
          { ...ofB, key: "small" },
        ],
        total: { ...none, ...doubled, completed: 2, failed: 1 },
      });
      expect((await one.tallies({ ...days, by: "harness", project: "p" })).groups).toEqual([
        { ...ofA, key: "claude" },
        { ...ofB, key: "codex" },
      ]);
      expect((await one.tallies({ ...days, by: "project", project: null })).groups).toEqual([
        { ...ofC, key: undefined },
      ]);
      // They may have ended before and after midnight.
      const { groups } = await one.tallies({ ...days, by: "day" });
      expect(groups.map(({ key }) => key)).toContainEqual(expect.stringMatching(/^\d{4}-\d\d-\d\d$/));
      expect(groups.reduce((sum, { completed, failed }) => sum + completed + failed, 0)).toBe(3);
      const earlier = await one.tallies({ from: "2000-01-01", to: "2000-01-02", by: "day" });
      expect(earlier).toEqual({ groups: [], total: { ...none, sandboxMs: 0 } });
    });

    it("accepts a run's id once, and returns the existing run", async () => {
      const [one, two] = [await opened(), await opened()];
      const created = await Promise.all([
        one.create(newRun("r", { digest: "1" })),
        two.create(newRun("r", { digest: "2" })),
      ]);
      const [existing] = created.filter((run) => run !== undefined);
      expect(
        created.filter((run) => run === undefined),
        "only the first of two creations with one id may succeed",
      ).toHaveLength(1);
      const announced = { count: 1, text: groupOf("r", 1, 1).text };
      expect(await one.create(newRun("r", { announced }))).toMatchObject({ events: 0 });
      expect(await one.append(groupOf("r", 1, 2))).toBe("written");
      expect(await two.createWithin(newRun("r", { announced }), {})).toMatchObject({ events: 2 });
      expect(await numbersOf(two, "r")).toEqual(upTo(2));
      expect(existing?.digest).toBe((await one.get("r"))?.digest);
    });

    it("writes a repeated group once, and never with a gap", async () => {
      const store = await opened();
      await store.create(newRun("r"));
      expect(await store.append(groupOf("r", 1, 3))).toBe("written");
      expect(await store.append(groupOf("r", 1, 3))).toBe("written");
      expect(await store.append(groupOf("r", 5, 1))).toBe("fenced");
      expect(await numbersOf(store, "r")).toEqual(upTo(3));
      expect(await store.finish("r", 1, ending("1"))).toBe("written");
      expect(await store.finish("r", 1, ending("2"))).toBe("written");
      expect(await store.append(groupOf("r", 4, 1))).toBe("fenced");
      expect((await store.get("r"))?.result).toBe("1");
      expect(await numbersOf(store, "r")).toEqual(upTo(3));
    });

    it("refuses writes of an owner that lost its lease", async () => {
      const [dead, living] = [await opened(), await opened()];
      await dead.renew("one", "http://one", 1);
      await living.renew("two", "http://two", 60_000);
      await dead.create(newRun("r"));
      await dead.append(groupOf("r", 1, 2));
      await expect.poll(async () => (await living.abandoned()).map(({ id }) => id)).toEqual(["r"]);
      const [taken, again] = await Promise.all([
        living.takeOver("r", 1, "two"),
        living.takeOver("r", 1, "two"),
      ]);
      expect([taken, again].filter((fence) => fence !== undefined)).toEqual([2]);
      expect(await dead.append(groupOf("r", 3, 1, 1))).toBe("fenced");
      expect(await dead.finish("r", 1, ending("dead"))).toBe("fenced");
      expect(await living.finish("r", 2, ending("lost"))).toBe("written");
      expect(await dead.finish("r", 1, ending("dead"))).toBe("fenced");
      expect((await dead.get("r"))?.result).toBe("lost");
      expect((await dead.renew("one", "http://one", 60_000)).runs).toEqual([]);
    });

    it("leaves a run with a living owner", async () => {
      const store = await opened();
      await store.renew("one", "", 60_000);
      await store.create(newRun("r"));
      expect(await store.abandoned()).toEqual([]);
      expect(await store.takeOver("r", 1, "two")).toBeUndefined();
    });

    it("lets two writers write in parallel, each run in its order", async () => {
      const writers = [await opened(), await opened()];
      await Promise.all(
        writers.map(async (store, index) => {
          await store.create(newRun(`r${index}`));
          for (let first = 1; first <= 100; first += 5) await store.append(groupOf(`r${index}`, first, 5));
        }),
      );
      for (const id of ["r0", "r1"]) expect(await numbersOf(writers[0] as Store, id)).toEqual(upTo(100));
    });

    it("keeps every confirmed group if the writer is killed", async () => {
      const main = fileURLToPath(new URL("../store/writer-main.js", import.meta.url));
      const args = [main, rig.module, JSON.stringify(rig.config), "r", "7"];
      const writer = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
      let confirmed = 0;
      writer.stdout.setEncoding("utf8");
      for await (const text of writer.stdout) {
        confirmed = Number(String(text).trim().split("\n").at(-1));
        if (confirmed >= 700) break;
      }
      writer.kill("SIGKILL");
      if (writer.exitCode === null && writer.signalCode === null) await once(writer, "exit");
      const store = await opened();
      const numbers = await numbersOf(store, "r");
      expect(numbers, "the events after the crash must be whole, in order, from the first").toEqual(
        upTo(numbers.length),
      );
      expect(
        numbers.length,
        "no event that was confirmed before the crash may be missing",
      ).toBeGreaterThanOrEqual(confirmed);
      expect(numbers.length % 7, "a group of seven events must be there as a whole or not at all").toBe(0);
    });

    it("continues after its connections were dropped, without loss or duplicates", async () => {
      const store = await opened();
      await store.create(newRun("r"));
      for (let first = 1; first <= 50; first += 5) {
        if (first === 21) await rig.drop();
        await expect
          .poll(() => store.append(groupOf("r", first, 5)).catch(String), { timeout: 10_000 })
          .toBe("written");
      }
      expect(await numbersOf(store, "r")).toEqual(upTo(50));
    });

    it("reports a full disk, and continues when there is room", async (context) => {
      if (rig.fill === undefined) return context.skip(`host: ${rig.fullReason}`);
      const store = await opened();
      await store.create(newRun("r"));
      await store.append(groupOf("r", 1, 1));
      const free = await rig.fill();
      const large = { ...groupOf("r", 2, 1), text: `{"n":2,"x":"${"x".repeat(3_000_000)}"}\n` };
      await expect(store.append(large)).rejects.toThrow(/full|space/i);
      expect(await numbersOf(store, "r")).toEqual([1]);
      await free();
      await expect
        .poll(() => store.append(groupOf("r", 2, 1)).catch(String), { timeout: 10_000 })
        .toBe("written");
      expect(await numbersOf(store, "r")).toEqual([1, 2]);
    });

    it("brings a schema up to date once, and refuses a newer one", async () => {
      const stores = await Promise.all([opened(), opened(), opened()]);
      await Promise.all(stores.map((store, index) => store.create(newRun(`r${index}`))));
      await rig.setSchema(1_000);
      await expect(openStore(rig)).rejects.toThrow(/schema 1000/);
    });

    it(`keeps ${manyEvents} events of one run, and reads them in pages`, { timeout: 600_000 }, async () => {
      const store = await opened();
      await store.create(newRun("r"));
      for (let first = 1; first <= manyEvents; first += 1_000) await store.append(groupOf("r", first, 1_000));
      const numbers = await numbersOf(store, "r", manyEvents / 2, 100_000);
      expect(numbers, "a reader must get every event once").toHaveLength(manyEvents / 2);
      expect([numbers[0], numbers.at(-1)]).toEqual([manyEvents / 2 + 1, manyEvents]);
      expect((await store.get("r"))?.events).toBe(manyEvents);
    });

    it("deletes ended runs by request, by age and by size, and no other", async () => {
      const store = await opened();
      for (const id of ["a", "b", "c", "running"]) {
        await store.create(newRun(id));
        await store.append(groupOf(id, 1, 1));
        if (id !== "running") await store.finish(id, 1, ending());
      }
      const size = (await store.get("a"))?.size ?? 0;
      expect(await store.delete("running"), "a run in progress must not be deleted").toBe(false);
      expect(await store.delete("a"), "an ended run must be deleted").toBe(true);
      expect(await store.delete("a"), "a run must be deleted only once").toBe(false);
      expect(await store.read("a", 0, 100)).toEqual([]);
      expect(
        await store.retain({ interactionMs: 60_000, maxAgeMs: 60_000, maxSize: size + 1_024 }),
      ).toMatchObject({ deleted: 1 });
      const kept = async () => (await store.list({ state: "ended", limit: 10 })).map(({ id }) => id);
      expect(await kept()).toEqual(["c"]);
      // What has ended since is counted too.
      await store.create(newRun("d"));
      await store.append(groupOf("d", 1, 1));
      await store.finish("d", 1, ending());
      expect(
        await store.retain({ interactionMs: 60_000, maxAgeMs: 60_000, maxSize: 2 * (size + 1_024) }),
      ).toMatchObject({ deleted: 0 });
      expect(
        await store.retain({ interactionMs: 60_000, maxAgeMs: 60_000, maxSize: size + 1_024 }),
      ).toMatchObject({ deleted: 1 });
      expect(await kept()).toEqual(["d"]);
      await expect
        .poll(() => store.retain({ interactionMs: 60_000, maxAgeMs: 1, maxSize: 1_000_000 }))
        .toMatchObject({ deleted: 1 });
      expect((await store.list({ limit: 10 })).map(({ id }) => id)).toEqual(["running"]);
    });

    describeQueue(opened);
    describeSharedStore(opened);
    describeLimits(opened);
    describeDeliveries(opened);
  });
}
