import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SetupFailed, SnapshotFailed } from "@ambit/core";
import type { Sandbox } from "@ambit/core/plugin";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { withoutSecrets } from "../src/environment/search.js";
import { packSnapshot, type SnapshotFacts, unpackSnapshot } from "../src/snapshots/archive.js";
import { hostSandbox } from "./host-sandbox.js";

const limits = { maxEntries: 10_000, maxBytes: 16 * 1_048_576 };
const { signal } = new AbortController();

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ambit-snapshot-"));
});
afterEach(() => {
  execFileSync("chmod", ["-R", "u+rwx", folder]);
  rmSync(folder, { recursive: true, force: true });
});

function sandboxIn(name: string): Sandbox {
  const workspace = join(folder, name, "workspace");
  const home = join(folder, name, "home");
  for (const path of [workspace, home]) mkdirSync(path, { recursive: true });
  return { ...hostSandbox(workspace), home };
}

async function packed(sandbox: Sandbox, asked = limits): Promise<{ facts: SnapshotFacts; archive: Buffer }> {
  const parts: Uint8Array[] = [];
  const keep = async (archive: AsyncIterable<Uint8Array>) => {
    for await (const part of archive) parts.push(part);
  };
  const facts = await packSnapshot(sandbox, asked, keep, signal);
  return { facts, archive: Buffer.concat(parts) };
}

async function* inPieces(bytes: Buffer, size = 10_000): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Lines of an archive, as a hostile setup could have made them. */
function archiveOf(...lines: readonly (object | string)[]): Buffer {
  const first = { type: "snapshot", version: 1 };
  return Buffer.from(
    [first, ...lines].map((line) => `${typeof line === "string" ? line : JSON.stringify(line)}\n`).join(""),
  );
}

const content = (text: string) => `${text.length}\n${text}0`;
const file = (name: string) => ({ type: "file", name, mode: 0o644, mtime: 0 });
const workspaceRoot = { type: "root", root: "workspace" };
const leave = { type: "leave" };
const end = { type: "end" };

async function unpack(sandbox: Sandbox, archive: Buffer): Promise<void> {
  const sha256 = createHash("sha256").update(archive).digest("hex");
  await unpackSnapshot(sandbox, inPieces(archive), { sha256 }, limits, signal);
}

describe("a snapshot", () => {
  test("brings everything of workspace and home into another sandbox", async () => {
    const from = sandboxIn("from");
    const { workspace, home } = from;
    mkdirSync(join(workspace, "node_modules/.bin"), { recursive: true });
    writeFileSync(join(workspace, "node_modules/tool.js"), "#!/usr/bin/env node\n", { mode: 0o755 });
    symlinkSync("../tool.js", join(workspace, "node_modules/.bin/tool"));
    symlinkSync("/usr/bin/env", join(workspace, "python"));
    symlinkSync("nowhere", join(workspace, "dangling"));
    writeFileSync(join(workspace, "large"), Buffer.alloc(3_000_001, "x"));
    writeFileSync(join(workspace, "empty"), "");
    writeFileSync(Buffer.from(`${workspace}/caf\xe9\n"`, "latin1"), "not UTF-8");
    utimesSync(join(workspace, "large"), 1_000, 1_234);
    mkdirSync(join(home, ".cache"));
    writeFileSync(join(home, ".cache/store"), "shared", { mode: 0o400 });
    linkSync(join(home, ".cache/store"), join(home, "second"));
    chmodSync(join(home, ".cache"), 0o555);
    execFileSync("mkfifo", [join(home, "pipe")]);

    const { facts, archive } = await packed(from);
    expect(facts).toMatchObject({ bytes: archive.length, skipped: 1 });
    const to = sandboxIn("to");
    await unpackSnapshot(to, inPieces(archive), facts, limits, signal);

    const at = (path: string) => join(to.workspace, path);
    expect(readlinkSync(at("node_modules/.bin/tool"))).toBe("../tool.js");
    expect(statSync(at("node_modules/tool.js")).mode & 0o777).toBe(0o755);
    expect(readlinkSync(at("python"))).toBe("/usr/bin/env");
    expect(readlinkSync(at("dangling"))).toBe("nowhere");
    expect(readFileSync(at("large")).equals(readFileSync(join(workspace, "large")))).toBe(true);
    expect(statSync(at("large")).mtimeMs).toBe(1_234_000);
    expect(readFileSync(at("empty"), "utf8")).toBe("");
    expect(readFileSync(Buffer.from(`${to.workspace}/caf\xe9\n"`, "latin1"), "utf8")).toBe("not UTF-8");
    expect(readFileSync(join(to.home, "second"), "utf8")).toBe("shared");
    expect(statSync(join(to.home, "second")).ino).toBe(statSync(join(to.home, ".cache/store")).ino);
    expect(statSync(join(to.home, ".cache")).mode & 0o777).toBe(0o555);
    expect(existsSync(join(to.home, "pipe"))).toBe(false);
  });

  test("has a workspace that lies in the home once", async () => {
    const { workspace } = sandboxIn("from");
    writeFileSync(join(workspace, "note"), "here");
    const { archive } = await packed({ ...hostSandbox(workspace), home: join(folder, "from") });
    expect(archive.toString().match(/"note"/g)).toHaveLength(1);
  });

  test.each([
    ["more files than allowed", { ...limits, maxEntries: 1 }, /maxEntries/],
    ["more bytes than allowed", { ...limits, maxBytes: 2_000 }, /maxSnapshotMiB/],
  ])("isn't made of %s", async (_what, asked, message) => {
    const from = sandboxIn("from");
    for (const name of ["one", "two"]) writeFileSync(join(from.workspace, name), Buffer.alloc(4_000));
    const failed = packed(from, asked);
    await expect(failed).rejects.toThrow(SnapshotFailed);
    await expect(failed).rejects.toThrow(message);
  });

  test("says what to do where node is missing", async () => {
    const from = { ...sandboxIn("from"), image: { searchPath: "/nowhere", copyRoot: "/", mounted: false } };
    await expect(packed(from)).rejects.toThrow(/needs node in the sandbox/);
  });

  test("that was changed on its way isn't used", async () => {
    const { facts, archive } = await packed(sandboxIn("from"));
    const changed = Buffer.from(archive.toString().replace('"home"', '"home" '));
    const failed = unpackSnapshot(sandboxIn("to"), inPieces(changed), facts, limits, signal);
    await expect(failed).rejects.toThrow(/its digest doesn.t match/);
  });

  test("that is cut off isn't used", async () => {
    const { archive } = await packed(sandboxIn("from"));
    await expect(unpack(sandboxIn("to"), archive.subarray(0, -8))).rejects.toThrow(/ends early/);
  });

  test("fails with its source's error", async () => {
    const broken = async function* () {
      yield archiveOf(workspaceRoot);
      throw new Error("the disk is gone");
    };
    const failed = unpackSnapshot(sandboxIn("to"), broken(), { sha256: "" }, limits, signal);
    await expect(failed).rejects.toThrow("the disk is gone");
  });
});

describe("a hostile snapshot", () => {
  /** A folder beside the sandbox's, with a file. */
  function outside(): string {
    const path = join(folder, "outside");
    mkdirSync(path);
    writeFileSync(join(path, "kept"), "as it was");
    return path;
  }

  test("control: an archive of this form is unpacked", async () => {
    const to = sandboxIn("to");
    await unpack(to, archiveOf(workspaceRoot, file("planted"), content("x"), leave, end));
    expect(readFileSync(join(to.workspace, "planted"), "utf8")).toBe("x");
  });

  test.each(["../planted", "..", ".", "", "a/b", "/planted", "nul\0"])(
    "can't name a file %j",
    async (name) => {
      const to = sandboxIn("to");
      const archive = archiveOf(workspaceRoot, file(name), content("x"), leave, end);
      await expect(unpack(to, archive)).rejects.toThrow(/name that can't be one/);
      expect(readdirSync(join(folder, "to")).sort()).toEqual(["home", "workspace"]);
    },
  );

  // As latin1, each of these characters is the byte of a dot or a slash.
  test.each(["\u012e\u012e", "\u012e\u012e\u012fplanted", "a\u022fb"])(
    "can't hide a path in the characters of the name %j",
    async (name) => {
      const to = sandboxIn("to");
      const archive = archiveOf(workspaceRoot, file(name), content("x"), leave, end);
      await expect(unpack(to, archive)).rejects.toThrow(/isn't bytes/);
      expect(readdirSync(join(folder, "to")).sort()).toEqual(["home", "workspace"]);
      expect(readdirSync(to.workspace)).toEqual([]);
    },
  );

  test("can't have a link to what isn't bytes", async () => {
    const archive = archiveOf(workspaceRoot, { type: "link", name: "x", target: "\u012f" }, leave, end);
    await expect(unpack(sandboxIn("to"), archive)).rejects.toThrow(/isn't bytes/);
  });

  test.each(["../..", "..", "a/../.."])("can't enter a folder %j", async (name) => {
    const archive = archiveOf(workspaceRoot, { type: "folder", name, mode: 0o755 }, leave, leave, end);
    await expect(unpack(sandboxIn("to"), archive)).rejects.toThrow(/name that can't be one/);
  });

  test("can't write through a link that it made before", async () => {
    const place = outside();
    const link = { type: "link", name: "door", target: place };
    const through = [{ type: "folder", name: "door", mode: 0o755 }, file("planted"), content("x"), leave];
    await expect(
      unpack(sandboxIn("to"), archiveOf(workspaceRoot, link, ...through, leave, end)),
    ).rejects.toThrow(SnapshotFailed);
    expect(readdirSync(place)).toEqual(["kept"]);
  });

  test("replaces a link instead of writing to where it leads", async () => {
    const place = outside();
    const to = sandboxIn("to");
    const link = { type: "link", name: "door", target: join(place, "kept") };
    await unpack(to, archiveOf(workspaceRoot, link, file("door"), content("x"), leave, end));
    expect(readFileSync(join(place, "kept"), "utf8")).toBe("as it was");
    expect(lstatSync(join(to.workspace, "door")).isFile()).toBe(true);
  });

  test("can't give a file outside a second name", async () => {
    const place = outside();
    const lines = [
      ...[{ ...file("first"), id: 0 }, content("x")],
      // The first name now leads outside.
      { type: "link", name: "first", target: join(place, "kept") },
      { type: "same", name: "second", id: 0 },
    ];
    await expect(unpack(sandboxIn("to"), archiveOf(workspaceRoot, ...lines, leave, end))).rejects.toThrow(
      /second name of no file/,
    );
    expect(statSync(join(place, "kept")).nlink).toBe(1);
  });

  test("can't set an identity bit", async () => {
    const to = sandboxIn("to");
    await unpack(to, archiveOf(workspaceRoot, { ...file("tool"), mode: 0o6755 }, content("x"), leave, end));
    expect(statSync(join(to.workspace, "tool")).mode & 0o7777).toBe(0o755);
  });

  test.each([
    ["a line that isn't JSON", "nonsense"],
    ["another type", { type: "device", name: "x" }],
    ["a root within a root", workspaceRoot],
    ["a second name of a file that isn't there", { type: "same", name: "x", id: 7 }],
    ["a mode that isn't a number", { type: "folder", name: "x", mode: "777" }],
    ["a line that is too long", `"${"x".repeat(2_000_000)}"`],
  ])("with %s is refused", async (_what, line) => {
    await expect(unpack(sandboxIn("to"), archiveOf(workspaceRoot, line, leave, end))).rejects.toThrow(
      SnapshotFailed,
    );
  });

  test("with a chunk of no size is refused", async () => {
    const archive = archiveOf(workspaceRoot, file("x"), "-1", "x", leave, end);
    await expect(unpack(sandboxIn("to"), archive)).rejects.toThrow(/chunk without a size/);
  });

  test("with folders without end is refused", async () => {
    const deep = Array.from({ length: 300 }, () => ({ type: "folder", name: "d", mode: 0o755 }));
    await expect(unpack(sandboxIn("to"), archiveOf(workspaceRoot, ...deep))).rejects.toThrow(
      /within each other/,
    );
  });
});

describe("the search of a snapshot for secrets", () => {
  const secret = "npm_0123456789abcdef";
  /** The snapshot of a sandbox with this. */
  async function archiveWith(make: (workspace: string) => void): Promise<Buffer> {
    const from = sandboxIn("from");
    make(from.workspace);
    return (await packed(from)).archive;
  }
  async function searched(archive: Buffer, pieceBytes: number): Promise<Buffer> {
    const parts: Uint8Array[] = [];
    for await (const part of withoutSecrets(inPieces(archive, pieceBytes), [secret])) parts.push(part);
    return Buffer.concat(parts);
  }
  /** Where the packing program ends a chunk. */
  const chunk = 262_144;
  const withSecretAt = (at: number) => (workspace: string) =>
    writeFileSync(join(workspace, "log"), `${"x".repeat(at)}${secret}${"x".repeat(1_000)}`);

  test.each([
    ["at the beginning of a file", withSecretAt(0)],
    ["across the end of a chunk", withSecretAt(chunk - 5)],
    ["at the end of a chunk", withSecretAt(chunk - secret.length)],
    ["in the name of a file", (workspace: string) => writeFileSync(join(workspace, `a"${secret}`), "")],
    ["in the target of a link", (workspace: string) => symlinkSync(`/é/${secret}`, join(workspace, "a"))],
  ])("finds one %s", async (_where, make) => {
    const archive = await archiveWith(make);
    for (const pieceBytes of [1_000, 100_000])
      await expect(searched(archive, pieceBytes)).rejects.toThrow(SetupFailed);
  });

  test("finds none that only two files together have", async () => {
    const archive = await archiveWith((workspace) => {
      mkdirSync(join(workspace, "d"));
      writeFileSync(join(workspace, "d/a"), `\n1\n${secret.slice(0, 10)}`);
      writeFileSync(join(workspace, "d/b"), `${secret.slice(10)}0\n{"type":"end"}\n`);
    });
    expect((await searched(archive, 11)).equals(archive)).toBe(true);
  });

  test.each(["nonsense", `"${"x".repeat(100_000)}`])("refuses what is no archive: %.10s", async (text) => {
    await expect(searched(Buffer.from(`${text}\n`), 10_000)).rejects.toThrow(SnapshotFailed);
  });
});
