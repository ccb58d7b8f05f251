// needs: git
import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { LocalEntry } from "@ambit/workspace";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { filesIn } from "../../../src/cli/by-hand/folder-files.js";
import { includedFiles } from "../../../src/cli/by-hand/ignored-files.js";
import { copiedRepository } from "../../../src/cli/by-hand/repository.js";

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "ambit-copy-")));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

function git(...args: readonly string[]): string {
  const env = { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  return execFileSync("git", ["-C", folder, ...args], { env, encoding: "utf8", stdio: "pipe" });
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

async function textOf(entry: LocalEntry | undefined): Promise<string> {
  const parts: Uint8Array[] = [];
  if (entry?.kind === "file") for await (const part of (await entry.content()) ?? []) parts.push(part);
  return Buffer.concat(parts).toString();
}

describe("what git ignores", () => {
  beforeEach(() => {
    git("init", "-q");
    write(".gitignore", "node_modules\n*.log\n.env\n");
    write("node_modules/a/index.js", "a");
    write("node_modules/a/.git/config", "[core]\n\tfsmonitor = x\n");
    mkdirSync(join(folder, "node_modules/.bin"));
    symlinkSync("../a/index.js", join(folder, "node_modules/.bin/a"));
    write("packages/p/node_modules/b.js", "b");
    write(".env", "KEY=1");
    write("logs/x.log", "x");
    write("logs/y.log", "y");
  });

  const include = async (...patterns: readonly string[]) => {
    const { ignored = [] } = await filesIn(folder);
    const { entries, left } = await includedFiles(folder, ignored, patterns);
    return { paths: entries.map(({ path }) => path).sort(), left };
  };

  it("stays behind, and is named", async () => {
    const { paths, left } = await include();
    expect(paths).toEqual([]);
    expect(left).toEqual([".env", "logs/", "node_modules/", "packages/"]);
  });

  it("comes along where a pattern names it, at any depth, with its links, and without repositories in it", async () => {
    expect(await include("node_modules/")).toEqual({
      paths: ["node_modules/.bin/a", "node_modules/a/index.js", "packages/p/node_modules/b.js"],
      left: [".env", "logs/"],
    });
    expect((await include("logs/x.log", "./node_modules/a")).paths).toEqual([
      "logs/x.log",
      "node_modules/a/index.js",
    ]);
    // Not a part of what is left.
    expect((await include("*.log")).paths).toEqual(["logs/x.log", "logs/y.log"]);
    await expect(include("index.js")).rejects.toThrow("names nothing");
  });

  it("refuses a pattern that names nothing", async () => {
    await expect(include("node_modules", "node_module")).rejects.toThrow(
      /--include: names nothing that git ignores in .*: node_module: /,
    );
  });
});

describe("the copy of a repository", () => {
  it("has its branches and index; no hook, no setting of its own and no credential", async () => {
    git("init", "-q", "-b", "main");
    git("config", "user.name", "Ada");
    git("config", "user.email", "ada@example.com");
    write("a", "a");
    git("add", ".");
    git("commit", "-qm", "first");
    git("branch", "other");
    git("config", "remote.origin.url", "https://ada:token@example.com/a.git?key=token");
    git("config", "http.extraHeader", "Authorization: token");
    git("config", "core.fsmonitor", "touch ran; false");
    write(".git/hooks/pre-commit", "#!/bin/sh\n");
    const copied = await copiedRepository(folder);
    if (copied === undefined || typeof copied === "string") throw new Error(String(copied));
    const byPath = new Map(copied.entries.map((entry) => [entry.path, entry]));
    const texts = await Promise.all([...byPath.values()].map(textOf));
    expect(texts.join("")).not.toMatch(/token|fsmonitor|extraHeader/);
    expect([...byPath.keys()].filter((path) => /hooks|index|HEAD|packed-refs/.test(path)).sort()).toEqual([
      ".git/HEAD",
      ".git/index",
      ".git/packed-refs",
    ]);
    expect(await textOf(byPath.get(".git/config"))).toContain('url = "https://example.com/a.git"');
    expect(await textOf(byPath.get(".git/packed-refs"))).toMatch(/refs\/heads\/main\n.*refs\/heads\/other\n/);
    expect(copied.user).toEqual({ name: "Ada", email: "ada@example.com" });
    expect(existsSync(join(folder, "ran"))).toBe(false);
    // Control: git alone runs it.
    git("status");
    expect(existsSync(join(folder, "ran"))).toBe(true);
    await copied.close();
  });

  it("is one without a commit too; and says why there is none", async () => {
    expect(await copiedRepository(folder)).toBe(undefined);
    git("init", "-q", "-b", "main");
    write("below/a", "a");
    git("add", ".");
    const copied = await copiedRepository(folder);
    if (copied === undefined || typeof copied === "string") throw new Error(String(copied));
    expect(await textOf(copied.entries.find(({ path }) => path === ".git/HEAD"))).toBe(
      "ref: refs/heads/main\n",
    );
    await copied.close();
    expect(await copiedRepository(join(folder, "below"))).toBe("the repository begins above the folder");
  });
});
