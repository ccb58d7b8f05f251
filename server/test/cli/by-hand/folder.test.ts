// needs: git
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { KeptOutputs } from "@ambit/workspace";
import type { Blobs } from "@ambit/workspace/blobs";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { applyChange, conflictsIn } from "../../../src/cli/by-hand/apply.js";
import { filesIn } from "../../../src/cli/by-hand/folder-files.js";
import { readChosen, takeBack } from "../../../src/cli/by-hand/take-back.js";

let folder: string;
beforeEach(() => {
  folder = emptyFolder();
});

function emptyFolder(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), "ambit-folder-")));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

/** In the folder, with nothing of the user's own settings. */
function git(...args: readonly string[]): string {
  const env = { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  const person = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
  return execFileSync("git", ["-C", folder, ...person, ...args], { env, encoding: "utf8", stdio: "pipe" });
}

const write = (path: string, text: string) => {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), text);
};

const pathsIn = async (from: string) => (await filesIn(from)).files.map(({ path }) => path);

describe("the copy of a folder", () => {
  it("is refused for a file, in a git repository too", async () => {
    git("init", "-q");
    write("notes.md", "one");
    await expect(filesIn(join(folder, "notes.md"))).rejects.toThrow("notes.md: is no folder");
  });

  it("has nothing from behind a link in place of a folder that git knows", async () => {
    git("init", "-q");
    write("plain/key", "as committed");
    write("data/key", "as committed");
    git("add", ".");
    const elsewhere = emptyFolder();
    writeFileSync(join(elsewhere, "key"), "secret");
    rmSync(join(folder, "data"), { recursive: true });
    symlinkSync(elsewhere, join(folder, "data"));
    const { files, leftOut } = await filesIn(folder);
    // Control: a file in a folder.
    expect(files.map(({ path }) => path)).toEqual(["plain/key"]);
    expect(leftOut).toContain("data/key");
  });

  it("doesn't run what the repository configures for objects that are missing", async () => {
    git("init", "-q");
    write("in/a", "a");
    write("out/b", "b");
    git("add", ".");
    git("commit", "-qm", "first");
    git("sparse-checkout", "set", "--cone", "--sparse-index", "in");
    // To list its index, git reads this folder's tree, and fetches it where it isn't there.
    const tree = git("rev-parse", "HEAD:out").trim();
    rmSync(join(folder, ".git/objects", tree.slice(0, 2), tree.slice(2)));
    const mark = join(emptyFolder(), "ran");
    for (const [key, value] of [
      ["core.repositoryFormatVersion", "1"],
      ["extensions.partialClone", "origin"],
      ["remote.origin.url", "ssh://nowhere.invalid/x"],
      ["remote.origin.promisor", "true"],
      ["core.sshCommand", `touch ${mark}; false`],
      ["protocol.ssh.allow", "always"],
    ] as const)
      git("config", key, value);
    git("ls-files");
    // Control: git alone runs it.
    expect(existsSync(mark)).toBe(true);
    rmSync(mark);
    expect(await pathsIn(folder)).toEqual(["in/a"]);
    expect(existsSync(mark)).toBe(false);
  });

  it("isn't made where git can't say what it ignores", async () => {
    write(".env", "TOKEN=1");
    // Control: outside of a repository, everything is copied.
    expect(await pathsIn(folder)).toEqual([".env"]);
    write(".gitignore", ".env");
    git("init", "-q");
    expect(await pathsIn(folder)).toEqual([".gitignore"]);
    rmSync(join(folder, ".git"), { recursive: true });
    write(".git", "gitdir: /nowhere/else");
    await expect(filesIn(folder)).rejects.toThrow(/git can't list \(fatal: .*\/nowhere\/else.*\): mend/);
  });

  it("is of the folder that a link leads to, where the link is named", async () => {
    write("a", "a");
    const link = join(emptyFolder(), "link");
    symlinkSync(folder, link);
    expect(await pathsIn(link)).toEqual(["a"]);
  });
});

describe("a change that is applied", () => {
  const digest = (text: string) => createHash("sha256").update(text).digest("hex");
  const modified = (before: string, after: string) =>
    ({
      change: "modified",
      path: "d/a",
      size: after.length,
      sha256: digest(after),
      before: digest(before),
    }) as const;
  const deleted = { change: "deleted", path: "d/a", before: digest("old") } as const;
  const text = () => readFileSync(join(folder, "d/a"), "utf8");

  it("control: replaces the file, as private as it was", async () => {
    write("d/a", "old");
    chmodSync(join(folder, "d/a"), 0o600);
    expect(await applyChange(folder, modified("old", "new"), Readable.from([Buffer.from("new")]))).toBe(
      undefined,
    );
    expect(text()).toBe("new");
    expect(statSync(join(folder, "d/a")).mode & 0o777).toBe(0o600);
  });

  it("isn't where the user writes the file meanwhile", async () => {
    write("d/a", "old");
    const change = modified("old", "new");
    expect(await conflictsIn(folder, [change])).toEqual([]);
    const content = async function* () {
      yield Buffer.from("new");
      write("d/a", "mine");
    };
    expect(await applyChange(folder, change, content())).toBe("it was changed meanwhile");
    expect(text()).toBe("mine");
    expect(readdirSync(join(folder, "d"))).toEqual(["a"]);
  });

  it("doesn't delete a file that the user writes meanwhile", async () => {
    write("d/a", "mine");
    expect(await applyChange(folder, deleted, Readable.from([]))).toBe("it was changed meanwhile");
    expect(text()).toBe("mine");
  });

  it("deletes nothing where the folder is gone already", async () => {
    expect(await conflictsIn(folder, [deleted])).toEqual([]);
    expect(await applyChange(folder, deleted, Readable.from([]))).toBe(undefined);
  });

  it("never follows a link", async () => {
    const elsewhere = emptyFolder();
    writeFileSync(join(elsewhere, "a"), "old");
    symlinkSync(elsewhere, join(folder, "d"));
    const change = modified("old", "new");
    expect(await conflictsIn(folder, [change])).toMatchObject([{ reason: /link/ }]);
    await expect(applyChange(folder, change, Readable.from([Buffer.from("new")]))).rejects.toThrow(/links/);
    await expect(applyChange(folder, deleted, Readable.from([]))).rejects.toThrow(/links/);
    expect(readFileSync(join(elsewhere, "a"), "utf8")).toBe("old");
  });
});

describe("a patch that is shown", () => {
  async function printedOf(patch: string): Promise<string> {
    const unused = () => Promise.reject(new Error("not part of this test"));
    const manifest = { version: 1, createdAt: 0, files: [], patch: { size: patch.length, sha256: "" } };
    const texts: Readonly<Record<string, string>> = { manifest: JSON.stringify(manifest), patch };
    const blobs: Blobs = {
      get: async (_owner, name) => {
        const text = texts[name];
        return text === undefined
          ? undefined
          : { size: text.length, content: Readable.from([Buffer.from(text)]) };
      },
      put: unused,
      files: () => Readable.from([]),
      deleteFile: unused,
      owners: () => Readable.from([]),
      delete: unused,
      close: unused,
    };
    const kept = await KeptOutputs.of("run", blobs);
    if (kept === undefined) throw new TypeError("it has a manifest");
    const changes = ["first", "last\u009b2J"].map(
      (path) => ({ change: "added", path, size: 1, sha256: "" }) as const,
    );
    const receipt = { files: [], omitted: [], patch: { size: 1, sha256: "", complete: true, changes } };
    const printed: string[] = [];
    const print = async (text: string) => void printed.push(text);
    await takeBack(kept, receipt, {
      folder: undefined,
      apply: undefined,
      patch: undefined,
      terminal: undefined,
      print,
    });
    return printed.join("");
  }

  it("comes after a list of every change, and says where it is cut", async () => {
    const list = "A 2\n  1  A first\n  2  A last\ufffd2J\n";
    const long = await printedOf("+x\n".repeat(50_000));
    expect(long.slice(0, list.length)).toBe(list);
    expect(long).toMatch(/\n… 150000 bytes in all: .*\n$/);
    // Control: a short one says it all.
    expect(await printedOf("+x\n")).toBe(`${list}+x\n`);
  });
});

describe("changes that are chosen", () => {
  const changes = ["a", "src/b.ts", "src/c/d.ts", "e.ts"].map(
    (path) => ({ change: "added", path, size: 1, sha256: "" }) as const,
  );
  it.each([
    ["", []],
    ["1", ["a"]],
    ["4, 1", ["a", "e.ts"]],
    ["2-3", ["src/b.ts", "src/c/d.ts"]],
    ["src", ["src/b.ts", "src/c/d.ts"]],
    ["*.ts 2", ["src/b.ts", "e.ts"]],
    ["**/*.ts", ["src/b.ts", "src/c/d.ts", "e.ts"]],
  ])("%j", (line, paths) => {
    expect(readChosen(line, changes)).toEqual({ value: changes.filter(({ path }) => paths.includes(path)) });
  });

  it.each(["5", "0", "1 nowhere", "3-2"])("says what names none of them: %s", (line) => {
    expect(readChosen(line, changes)).toEqual({ problem: expect.stringContaining("names none of them") });
  });
});
