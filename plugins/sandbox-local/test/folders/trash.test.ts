// needs: jail
import { existsSync } from "node:fs";
import { chmod, chown, mkdir, readdir, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Trash } from "../../src/folders/data-folder.js";
import { removeTree } from "../../src/folders/remove-tree.js";
import { startRunner } from "../support/runner.js";
import {
  closed,
  openConfined,
  run,
  scope,
  shell,
  silent,
  specOf,
  temporaryFolder,
} from "../support/specs.js";
import { isRoot, ordinaryUser, testAsRoot } from "../support/user.js";

/** What an agent can leave in its workspace. Each of these once couldn't be removed. */
const leftovers: readonly (readonly [string, string])[] = [
  [
    "a path longer than any call takes",
    "name=$(printf 'd%.0s' $(seq 200)); for i in $(seq 30); do mkdir $name && cd $name; done; touch end",
  ],
  [
    "names that aren't UTF-8, and a folder in one without any permission",
    "mkdir -p $(printf '\\377')/closed/in && chmod 000 $(printf '\\377')/closed",
  ],
  [
    "a folder whose own entries can't be changed",
    "mkdir -p fixed/in && touch fixed/in/x && chmod 500 fixed fixed/in",
  ],
  ["a workspace without permissions", "mkdir in && chmod 000 ."],
];

const users = [
  ...(isRoot
    ? ([
        ["root", undefined],
        ["an ordinary user", ordinaryUser],
      ] as const)
    : ([["this user", undefined]] as const)),
];

/** All of them, each in a folder of its own, and the closed workspace last. */
const allLeftovers = leftovers
  .map(([, script], index) =>
    index === leftovers.length - 1 ? script : `(mkdir ${index} && cd ${index} && ${script})`,
  )
  .join("; ");

describe.each(users)("run by %s", (_name, user) => {
  test("the next start removes what a killed runner left", async () => {
    const dataFolder = await temporaryFolder();
    await chmod(dataFolder, 0o711);
    if (user !== undefined) await chown(dataFolder, user.uid, user.gid);
    const options = { spec: { boundary: closed }, ...(user === undefined ? {} : { user }) };
    const dead = await startRunner({ dataFolder }, `${allLeftovers}; echo up; read _`, options);
    expect(dead.said).toBe("up\n");
    await dead.killWithWatch();
    const left = await readdir(join(dataFolder, "runners"));
    const next = await startRunner({ dataFolder }, "echo up; read _", options);
    expect(next.evidence.confinement).toBe("confined");
    expect(await readdir(join(dataFolder, "runners"))).not.toContain(left[0]);
    await expect.poll(() => readdir(join(dataFolder, "trash")), { timeout: 10_000 }).toEqual([]);
  });
});

test.each(leftovers)("closing a session removes %s", async (_what, script) => {
  const dataFolder = await temporaryFolder();
  await chmod(dataFolder, 0o711);
  const sandbox = await openConfined({}, { config: { dataFolder } });
  await run(sandbox, shell(script));
  await sandbox.close();
  await expect.poll(() => readdir(join(dataFolder, "trash")), { timeout: 10_000 }).toEqual([]);
});

testAsRoot("what can't be removed is kept, and doesn't fail a start", async () => {
  const dataFolder = await temporaryFolder();
  await chmod(dataFolder, 0o711);
  await chown(dataFolder, ordinaryUser.uid, ordinaryUser.gid);
  const options = { spec: { boundary: closed }, user: ordinaryUser };
  const first = await startRunner({ dataFolder }, "echo up; read _", options);
  const [key = ""] = await readdir(join(dataFolder, "runners"));
  // Another user's folder with something in it: its owner alone can remove that.
  await mkdir(join(dataFolder, "runners", key, "foreign"));
  await writeFile(join(dataFolder, "runners", key, "foreign", "file"), "");
  await first.killWithWatch();
  for (let start = 0; start < 2; start++) {
    const next = await startRunner({ dataFolder }, "echo up; read _", options);
    expect(next.said).toBe("up\n");
    await next.kill();
  }
  const kept = (await readdir(join(dataFolder, "trash"))).filter((name) => name.startsWith(key));
  expect(kept).toHaveLength(1);
  expect(existsSync(join(dataFolder, "trash", kept[0] ?? "", "foreign", "file"))).toBe(true);
});

test("a link is removed but not its target, and a missing folder is fine", async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, "kept"));
  await mkdir(join(folder, "tree"));
  await symlink(join(folder, "kept"), join(folder, "tree", "link"));
  expect(await removeTree(join(folder, "none"))).toBeUndefined();
  expect(await removeTree(join(folder, "tree"))).toBeUndefined();
  expect(await readdir(folder)).toEqual(["kept"]);
});

test.each([
  ["a few small files", { entries: 3, bytes: 10, depth: 1 }],
  ["many files", { entries: 40, bytes: 10, depth: 1 }],
  ["a large file", { entries: 1, bytes: 2 * 1024 * 1024, depth: 1 }],
  ["a deep tree", { entries: 1, bytes: 10, depth: 8 }],
])("%s are removed, and what a link among them leads to isn't", async (_what, { entries, bytes, depth }) => {
  const folder = await temporaryFolder();
  const tree = join(folder, "tree");
  const deepest = join(tree, ...Array.from({ length: depth }, () => "in"));
  await mkdir(deepest, { recursive: true });
  for (let entry = 0; entry < entries; entry++)
    await writeFile(join(deepest, `${entry}`), Buffer.alloc(bytes, 1));
  await mkdir(join(folder, "kept"));
  await writeFile(join(folder, "kept", "file"), "kept");
  await symlink(join(folder, "kept"), join(deepest, "link"));
  expect(await removeTree(tree)).toBeUndefined();
  expect(await readdir(folder)).toEqual(["kept"]);
  expect(existsSync(join(folder, "kept", "file"))).toBe(true);
});

test("a folder that is replaced by a link meanwhile is removed, and not what the link leads to", async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, "kept"));
  await writeFile(join(folder, "kept", "file"), "kept");
  await mkdir(join(folder, "tree"));
  await symlink(join(folder, "kept"), join(folder, "tree", "link"));
  vi.resetModules();
  // What was a folder when it was looked at: `stat` follows the link.
  const lstat = vi.fn(stat);
  vi.doMock("node:fs/promises", async (original) => ({ ...(await original<object>()), lstat }));
  onTestFinished(() => {
    vi.doUnmock("node:fs/promises");
    vi.resetModules();
  });
  const raced = await import("../../src/folders/remove-tree.js");
  expect(await raced.removeTree(join(folder, "tree"))).toBeUndefined();
  expect(lstat).toHaveBeenCalledWith(expect.stringMatching(/link$/));
  expect(existsSync(join(folder, "tree"))).toBe(false);
  expect(existsSync(join(folder, "kept", "file"))).toBe(true);
});

test("a caller waits for no removal, and for another one's end only if two run", async () => {
  const folder = await temporaryFolder();
  const ends: ((reason?: string) => void)[] = [];
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  vi.resetModules();
  vi.doMock("../../src/folders/remove-tree.js", () => ({
    beginRemoval: async () => ({
      ended: new Promise<string | undefined>((resolve) => ends.push(resolve)),
    }),
  }));
  onTestFinished(() => {
    vi.useRealTimers();
    vi.doUnmock("../../src/folders/remove-tree.js");
    vi.resetModules();
  });
  const { Trash: Mocked } = await import("../../src/folders/data-folder.js");
  const trash = await Mocked.open(folder);
  for (const name of ["first", "second", "third"]) await mkdir(join(folder, name));
  // Neither ends, and no time passes.
  await trash.discard(join(folder, "first"));
  await trash.discard(join(folder, "second"));
  const third = trash.discard(join(folder, "third"));
  await expect.poll(() => existsSync(join(folder, "third"))).toBe(false);
  // It waits for its turn, the only one that does.
  await expect.poll(() => vi.getTimerCount()).toBe(1);
  expect(ends).toHaveLength(2);
  ends[0]?.("busy");
  await third;
  expect(ends).toHaveLength(3);
  const log = { ...silent, warn: vi.fn() };
  trash.report(log);
  expect(log.warn.mock.calls).toMatchObject([[{ reason: "busy" }, expect.any(String)]]);
});

test("a session is closed before its files are removed, and the backend once they are", async () => {
  const dataFolder = await temporaryFolder();
  const removal = Promise.withResolvers<{ ended: Promise<undefined> }>();
  vi.resetModules();
  vi.doMock("../../src/folders/remove-tree.js", () => ({ beginRemoval: () => removal.promise }));
  onTestFinished(() => {
    vi.doUnmock("../../src/folders/remove-tree.js");
    vi.resetModules();
  });
  const { configSchema, LocalSandbox } = await import("../../src/index.js");
  const backend = new LocalSandbox(configSchema.parse({ dataFolder, unconfined: "prefer" }));
  const sandbox = await backend.open(specOf(), scope);
  await sandbox.close();
  let isClosed = false;
  const closing = backend.close().then(() => {
    isClosed = true;
  });
  await nextTurn();
  expect(isClosed).toBe(false);
  removal.resolve({ ended: Promise.resolve(undefined) });
  await closing;
});

test("leftovers are logged once", async () => {
  const folder = await temporaryFolder();
  const trash = await Trash.open(folder);
  trash.note("/somewhere", new Error("EBUSY"));
  const log = { ...silent, warn: vi.fn() };
  trash.report(log);
  trash.report(log);
  expect(log.warn.mock.calls.map(([fields]) => fields)).toEqual([{ path: "/somewhere", reason: "EBUSY" }]);
});
