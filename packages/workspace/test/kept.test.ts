import { mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { runRequestSchema } from "@ambit/core/contract";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { KeptSnapshots } from "../src/environment/kept.js";
import { environmentKey } from "../src/environment/key.js";
import { setupSandbox } from "../src/environment/sandbox-of.js";

const day = 86_400_000;
const limits = { maxSnapshots: 10, maxBytes: 1_000_000, maxUnusedMs: 30 * day, rebuildAfterMs: 7 * day };
const key = "a".repeat(64);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ambit-kept-"));
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(folder, { recursive: true, force: true });
});

async function keep(kept: KeptSnapshots, project: string | undefined, name = key, text = "archive") {
  const draft = await kept.draft(project);
  try {
    await draft.write(Readable.from([Buffer.from(text)]));
    const facts = {
      sha256: "",
      bytes: text.length,
      entries: 1,
      skipped: 0,
      builtAt: Date.now(),
      sources: [],
    };
    return await draft.keep(name, facts);
  } finally {
    await draft.close();
  }
}

async function textOf(kept: KeptSnapshots, project: string | undefined, name = key) {
  const found = await kept.find(project, name);
  if (found === undefined) return undefined;
  const text = (await buffer(found.archive)).toString();
  await found.close();
  return text;
}

const files = () => readdirSync(folder).flatMap((project) => readdirSync(join(folder, project)));

describe("kept snapshots", () => {
  test("are found by their project and key, and can't be written", async () => {
    const kept = new KeptSnapshots(folder, limits);
    expect(await textOf(kept, "one")).toBeUndefined();
    expect(await keep(kept, "one")).toBe(true);
    expect(await textOf(kept, "one")).toBe("archive");
    expect(await textOf(kept, "two")).toBeUndefined();
    expect(await textOf(kept, undefined)).toBeUndefined();
    expect(await textOf(kept, "one", "b".repeat(64))).toBeUndefined();
    const [project = "", name = ""] = [readdirSync(folder)[0], files()[0]];
    expect(statSync(join(folder, project, name)).mode & 0o777).toBe(0o400);
  });

  test("are built again after their time, however often they are used", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const kept = new KeptSnapshots(folder, limits);
    await keep(kept, "one");
    vi.setSystemTime(Date.now() + 6 * day);
    expect(await textOf(kept, "one")).toBe("archive");
    vi.setSystemTime(Date.now() + 2 * day);
    expect(await textOf(kept, "one")).toBeUndefined();
    // And replaced by the new one.
    await keep(kept, "one", key, "newer");
    expect(await textOf(kept, "one")).toBe("newer");
  });

  test("leave nothing of a draft that isn't kept", async () => {
    const kept = new KeptSnapshots(folder, { ...limits, maxBytes: 3 });
    expect(await keep(kept, "one")).toBe(false);
    expect(files()).toEqual([]);
  });

  test("that are damaged don't count", async () => {
    const kept = new KeptSnapshots(folder, limits);
    await keep(kept, "one");
    const [project = ""] = readdirSync(folder);
    const path = join(folder, project, `${"c".repeat(64)}.snapshot`);
    for (const text of ["", "archive", `archive{}${"2".padStart(12)}`, `x${"99999999".padStart(12)}`]) {
      writeFileSync(path, text);
      expect(await textOf(kept, "one", "c".repeat(64))).toBeUndefined();
    }
  });

  test("go beyond the number that may be kept, the least recently used first, with drafts of ended processes", async () => {
    const kept = new KeptSnapshots(folder, { ...limits, maxSnapshots: 2 });
    await keep(kept, "one", "1".repeat(64));
    await keep(kept, "one", "2".repeat(64));
    const [project = ""] = readdirSync(folder);
    const at = (name: string) => join(folder, project, name);
    writeFileSync(at(".draft-old"), "");
    for (const [name, age] of [
      [".draft-old", 2 * day],
      [`${"1".repeat(64)}.snapshot`, 2_000],
      [`${"2".repeat(64)}.snapshot`, 1_000],
    ] as const) {
      const when = new Date(Date.now() - age);
      utimesSync(at(name), when, when);
    }
    // Its use counts.
    expect(await textOf(kept, "one", "1".repeat(64))).toBe("archive");
    await keep(kept, "one", "3".repeat(64));
    expect(files().sort()).toEqual([`${"1".repeat(64)}.snapshot`, `${"3".repeat(64)}.snapshot`]);
  });
});

describe("the key of an environment", () => {
  const keyOf = (more: object = {}, facts: object = {}, source: object = {}) => {
    const request = runRequestSchema.parse({
      sandboxPermission: { network: "off", filesystem: "workspace" },
      workspace: { sources: [{ type: "git", url: "https://git.example/a", ...source }] },
      environment: { setup: ["true"], env: { A: "1", B: "2" }, ...more },
    });
    const own = setupSandbox(request);
    if (own === undefined) throw new Error("no sandbox");
    const commits = new Map([[0, "c1"]]);
    return environmentKey({
      request,
      boundary: own.boundary,
      backend: "local",
      system: "x",
      commits,
      ...facts,
    });
  };
  const credential = (value: string) => [{ name: "T", value, hosts: ["a.example"], as: "bearer" }];

  test.each<[string, string]>([
    ["another credential", keyOf({ credentials: credential("12345678") })],
    ["another token of the repository", keyOf({}, {}, { credential: { value: "12345678" } })],
    ["another name of the same commit", keyOf({}, {}, { ref: "main" })],
    ["another order of variables", keyOf({ env: { B: "2", A: "1" } })],
    ["another way to use it", keyOf({ cache: "refresh", prepareOnly: true })],
  ])("is the same for %s", (_what, other) => {
    expect(other).toBe(keyOf());
  });

  const archived = (url: string, sha256 = "a".repeat(64)) =>
    keyOf({}, {}, { type: "archive", format: "tar.gz", url, sha256 });
  const signed = "https://files.example/app.tgz?version=2";

  test.each([
    [`${signed}&X-Amz-Signature=1&X-Amz-Expires=60`],
    [`${signed}&sv=2024&se=1&sr=b&sp=r&sig=abc`],
    [`${signed}&Expires=1&Signature=abc&Key-Pair-Id=K`],
  ])("is the same however the URL of an archive is signed: %s", (url) => {
    expect(archived(url)).toBe(archived(signed));
  });

  test.each([
    ["another host that answers", "https://attacker.example/app.tgz?version=2"],
    ["another path", "https://files.example/other.tgz?version=2"],
    ["another thing of the same path", "https://files.example/app.tgz?version=3"],
  ])("of an archive's digest alone opens nothing: %s", (_what, url) => {
    expect(archived(url)).not.toBe(archived(signed));
  });

  test.each<[string, string]>([
    ["command", keyOf({ setup: ["false"] })],
    ["devcontainer", keyOf({ devcontainer: {} })],
    ["variable", keyOf({ env: { A: "2", B: "2" } })],
    ["network", keyOf({ boundary: { network: { allowlist: ["a.example"] } } })],
    ["limit", keyOf({ boundary: { network: "off", resources: { memoryMb: 5 } } })],
    ["commit", keyOf({}, { commits: new Map([[0, "c2"]]) })],
    ["folder", keyOf({}, {}, { into: "app" })],
    ["backend", keyOf({}, { backend: "docker" })],
    ["system", keyOf({}, { system: "y" })],
  ])("is another one for another %s", (_what, other) => {
    expect(other).not.toBe(keyOf());
  });
});
