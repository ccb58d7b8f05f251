import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { claimReplica, defaultDataFolder, type Ownership, quietLog, Reaper } from "../src/index.js";

const folder = async () => {
  const path = await mkdtemp(join(tmpdir(), "ambit-replica-"));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
};

describe("a replica", () => {
  it("distinguishes living and dead replicas of its own host and folder only", async () => {
    const path = await folder();
    const [one, two, elsewhere] = [
      await claimReplica(path, "p"),
      await claimReplica(path, "p"),
      await claimReplica(await folder(), "p"),
    ];
    const home = one.name.split("-")[0];
    expect(two.name.split("-")[0]).toBe(home);
    expect(await one.stateOf(two.name)).toBe("alive");
    expect(await one.stateOf(one.name)).toBe("alive");
    expect(await one.stateOf(`${home}-0123456789ab`)).toBe("dead");
    expect(await one.stateOf(elsewhere.name)).toBe("unknown");
    expect(await one.stateOf(`${home}-../../etc`)).toBe("unknown");
    expect(await one.stateOf("")).toBe("unknown");
    expect((await readdir(path)).filter((name) => name.endsWith(".sock"))).toHaveLength(2);
    await rm(path, { recursive: true });
    expect(await one.stateOf(two.name)).toBe("unknown");
  });

  it("reports the fix for an unusable folder", async () => {
    const path = join(await folder(), "file");
    await writeFile(path, "");
    await expect(claimReplica(path, "sandbox-x")).rejects.toThrow(/set sandbox-x's dataFolder to/);
  });
});

describe("the default data folder", () => {
  it.each([
    ["", {}, 0, "/var/lib/ambit"],
    ["daytona", {}, 0, "/var/lib/ambit/daytona"],
    ["", { XDG_STATE_HOME: "/state" }, 0, "/var/lib/ambit"],
    ["daytona", { XDG_STATE_HOME: "/state" }, 1000, "/state/ambit/daytona"],
    ["", { XDG_STATE_HOME: "relative" }, 1000, join(homedir(), ".local/state/ambit")],
    ["", {}, 1000, join(homedir(), ".local/state/ambit")],
  ])("of %o with %o as user %i is %s", (below, environment, uid, expected) => {
    expect(defaultDataFolder(below, environment, uid)).toBe(expected);
  });
});

/** Of each reaper here, which has a data folder of its own. */
const options = async () => ({
  platform: "Test",
  plugin: "p",
  dataFolder: await folder(),
  deployment: "d",
  ttlMinutes: 1,
  reapMinutes: 60,
});

it("a reaper deletes what no session needs, and continues after a failed deletion", async () => {
  const { dataFolder, ...others } = await options();
  const removed: string[] = [];
  const left = new Map<string, Awaited<ReturnType<Reaper["begin"]>>>();
  const reaper = new Reaper({
    dataFolder,
    ...others,
    async *leftovers() {
      yield { name: "not-ours", owner: undefined, remove: async () => void removed.push("not-ours") };
      for (const [name, owner] of left) {
        const remove = async () => {
          if (name === "stuck") throw new Error("busy");
          removed.push(name);
        };
        yield { name, owner, remove };
      }
    },
  });
  const open = await reaper.begin("open");
  const neighbour = await claimReplica(dataFolder, "p");
  const other = { ...open, replica: "0123456789ab-0123456789ab" };
  left.set("open", open);
  left.set("stuck", { ...open, session: "ended" });
  left.set("ended", { ...open, session: "ended" });
  left.set("of-another-host", other);
  left.set("expired", { ...other, expires: 1 });
  left.set("expired-beside-its-live-runner", { ...open, replica: neighbour.name, expires: 1 });
  left.set("of-another-deployment", { ...other, deployment: "e", expires: 1 });
  expect(await reaper.reap()).toEqual({
    deleted: ["ended", "expired"],
    failed: [{ name: "stuck", error: new Error("busy") }],
  });
  reaper.end("open");
  await reaper.keepReaping(quietLog);
  expect(removed).toEqual(["ended", "expired", "open", "ended", "expired"]);
});

it("a reaper keeps what a second attempt made, whose first attempt has ended", async () => {
  const left: { readonly name: string; readonly owner: Ownership }[] = [];
  const removed: string[] = [];
  const reaper = new Reaper({
    ...(await options()),
    async *leftovers() {
      for (const { name, owner } of left) yield { name, owner, remove: async () => void removed.push(name) };
    },
  });
  const end = await reaper.holding("session", async (owner, end) => {
    end();
    left.push({ name: "second", owner });
    return end;
  });
  expect((await reaper.reap()).deleted).toEqual([]);
  end();
  expect((await reaper.reap()).deleted).toEqual(["second"]);
});

it("a reaper evicts layers after each search, and logs that it couldn't", async () => {
  const evictions: string[] = [];
  const warnings: string[] = [];
  const reaper = new Reaper({
    ...(await options()),
    reapMinutes: 0.0005,
    async *leftovers() {
      evictions.push("search");
      yield { name: "not-ours", owner: undefined, remove: async () => undefined };
    },
    async evictLayers() {
      evictions.push("evict");
      throw new Error("the platform is away");
    },
  });
  await reaper.keepReaping({ ...quietLog, warn: (_, message) => void warnings.push(message ?? "") });
  await vi.waitFor(() => expect(evictions.length).toBeGreaterThan(3));
  expect(evictions.slice(0, 4)).toEqual(["search", "evict", "search", "evict"]);
  expect(warnings[0]).toBe("old layers couldn't be removed");
});
