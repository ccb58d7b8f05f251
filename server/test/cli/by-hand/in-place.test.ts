// needs: git
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { FolderSnapshot } from "../../../src/cli/by-hand/in-place/folder-snapshot.js";
import { guardedPaths } from "../../../src/cli/by-hand/in-place/guarded-paths.js";

let folder: string;
let state: string;
beforeEach(() => {
  [folder = "", state = ""] = ["folder", "state"].map((name) =>
    realpathSync(mkdtempSync(join(tmpdir(), `ambit-${name}-`))),
  );
  onTestFinished(() => {
    for (const path of [folder, state]) rmSync(path, { recursive: true });
  });
});

function git(...args: readonly string[]): string {
  const env = { PATH: process.env.PATH, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
  return execFileSync("git", ["-C", folder, ...args], { env, encoding: "utf8", stdio: "pipe" });
}

function write(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

/** Everything in the folder, but what git keeps. */
function contents(): Record<string, string> {
  const paths = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const seen = paths
    .filter((path) => !path.startsWith(".git"))
    .map((path) => {
      const place = join(folder, path);
      const found = lstatSync(place);
      const mode = (found.mode & 0o777).toString(8);
      if (found.isSymbolicLink()) return [path, `link to ${readlinkSync(place)}`];
      return [path, found.isDirectory() ? `folder ${mode}` : `${mode} ${readFileSync(place, "utf8")}`];
    });
  return Object.fromEntries(seen.sort());
}

/** A run that does this. */
async function run(act: () => void) {
  const snapshot = FolderSnapshot.of(folder, state);
  await snapshot.prepare();
  await snapshot.begin();
  act();
  return await snapshot.ended();
}

const undo = () => FolderSnapshot.of(folder, state).restore();

describe("a folder that a run worked in", () => {
  beforeEach(() => {
    write("kept", "kept");
    write("edited", "before");
    write("d/removed", "removed");
    write("d/e/private", "private");
    chmodSync(join(folder, "d/e/private"), 0o600);
    chmodSync(join(folder, "d/e"), 0o700);
    write("becomes-a-folder", "file");
    write("becomes-a-link/in", "in");
    symlinkSync("kept", join(folder, "link"));
    mkdirSync(join(folder, "empty"));
  });

  const work = () => {
    write("edited", "after!");
    rmSync(join(folder, "d"), { recursive: true });
    rmSync(join(folder, "becomes-a-folder"));
    write("becomes-a-folder/new/file", "new");
    rmSync(join(folder, "becomes-a-link"), { recursive: true });
    symlinkSync(state, join(folder, "becomes-a-link"));
    rmSync(join(folder, "link"));
    symlinkSync("/etc", join(folder, "link"));
    rmSync(join(folder, "empty"), { recursive: true });
    chmodSync(join(folder, "kept"), 0o755);
    write("new/file", "new");
  };

  it("is brought back whole: contents, modes, links, empty folders", async () => {
    const before = contents();
    expect(await run(work)).toEqual({ isChanged: true, disarmed: [] });
    expect(contents()).not.toEqual(before);
    expect(await undo()).toMatchObject({ left: [] });
    expect(contents()).toEqual(before);
    await expect(undo()).rejects.toThrow("has nothing to go back to: its last run is undone already");
  });

  it("keeps what the user changed since, and names it", async () => {
    await run(work);
    write("edited", "the user's");
    write("new/users", "the user's");
    expect((await undo()).left).toEqual(["edited", "new", "new/users"]);
    expect(contents()).toMatchObject({
      edited: expect.stringContaining("the user's"),
      "d/removed": "644 removed",
    });
    expect(existsSync(join(folder, "new/file"))).toBe(false);
  });

  it("goes back after a run that was killed, and leaves files that may be the user's", async () => {
    const snapshot = FolderSnapshot.of(folder, state);
    await snapshot.prepare();
    await snapshot.begin();
    write("edited", "after");
    write("new", "whose?");
    expect(await undo()).toEqual({ restored: 1, left: ["new"] });
    expect(contents()).toMatchObject({ edited: "644 before", new: "644 whose?" });
  });

  it("goes back to what it was before the last run that changed something, or that began", async () => {
    const before = contents();
    await run(work);
    expect(await run(() => {})).toEqual({ isChanged: false, disarmed: [] });
    // One that was refused.
    await FolderSnapshot.of(folder, state).prepare();
    await undo();
    expect(contents()).toEqual(before);
  });

  it("keeps each content once, and none that nothing needs; only its user can read it", async () => {
    write("same", "kept");
    await run(() => write("edited", "after"));
    await run(() => write("edited", "later"));
    const [place = ""] = readdirSync(join(state, "in-place"));
    const kept = join(state, "in-place", place, "contents");
    const texts = readdirSync(kept).map((name) => readFileSync(join(kept, name), "utf8"));
    expect(texts.sort()).toEqual(["after", "file", "in", "kept", "private", "removed"]);
    for (const name of readdirSync(kept)) expect(statSync(join(kept, name)).mode & 0o077).toBe(0);
    expect(statSync(kept).mode & 0o077).toBe(0);
  });

  it("has nothing to go back to without a run", async () => {
    await expect(undo()).rejects.toThrow("has nothing to go back to: no run worked in it");
  });
});

describe("a repository that a run made", () => {
  /** What git runs where a person looks at the folder. */
  const mark = () => join(state, "ran");
  const evil = (config: string, workTree = "..") => {
    writeFileSync(
      config,
      `[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch ${mark()}; false"\n\tbare = false\n\tworktree = ${workTree}\n`,
    );
  };
  const lookFrom = (path: string) => {
    try {
      execFileSync("git", ["-C", join(folder, path), "status"], { stdio: "pipe" });
    } catch {
      // It is none.
    }
    const hasRun = existsSync(mark());
    rmSync(mark(), { force: true });
    return hasRun;
  };
  const attacks: Record<string, () => string> = {
    "in a folder": () => {
      git("init", "-q", "sub");
      evil(join(folder, "sub/.git/config"));
      return "sub";
    },
    "in place of the folder's own": () => {
      git("init", "-q");
      evil(join(folder, ".git/config"));
      return ".";
    },
    "a folder that is one": () => {
      git("init", "-q", "--bare", "assets");
      evil(join(folder, "assets/config"), "tree");
      mkdirSync(join(folder, "assets/tree"));
      return "assets";
    },
    "a file that points to one": () => {
      git("init", "-q", "--bare", "x");
      evil(join(folder, "x/config"), "../sub");
      write("sub/.git", "gitdir: ../x\n");
      return "sub";
    },
  };

  it.each(Object.entries(attacks))("runs nothing on the host afterwards: %s", async (_, attack) => {
    write("a", "a");
    let from = "";
    let isControlRun = false;
    const ended = await run(() => {
      from = attack();
      // Control: until the run has ended, git would run it.
      isControlRun = lookFrom(from);
    });
    expect(isControlRun).toBe(true);
    expect(ended?.disarmed.length).toBeGreaterThan(0);
    expect(lookFrom(from)).toBe(false);
    await undo();
    expect(Object.keys(contents())).toEqual(["a"]);
  });

  it("isn't touched where the user made it before", async () => {
    git("init", "-q", "sub");
    expect(await run(() => write("a", "a"))).toEqual({ isChanged: true, disarmed: [] });
    expect(existsSync(join(folder, "sub/.git/HEAD"))).toBe(true);
  });
});

describe("what git is told to run from the folder", () => {
  it("is guarded: a hooks path, programs, further settings", async () => {
    git("init", "-q");
    for (const path of [
      ".husky/pre-commit",
      "tools/clean.sh",
      "tools/other.sh",
      "shared.gitconfig",
      "origin/a",
    ])
      write(path, "");
    git("config", "core.hooksPath", ".husky");
    git("config", "filter.x.clean", "sh -c 'tools/clean.sh %f'");
    git("config", "include.path", "../shared.gitconfig");
    // Control: a setting that git doesn't run.
    git("config", "branch.main.remote", "origin");
    git("config", "includeIf.onbranch:main.path", "../more.gitconfig");
    git("config", "alias.st", "status");
    expect(await guardedPaths(folder)).toEqual({
      present: [".husky", "shared.gitconfig", "tools/clean.sh"],
      missing: ["more.gitconfig"],
    });
  });

  it("is disarmed where the run makes it: a hooks path that wasn't there", async () => {
    git("init", "-q");
    git("config", "core.hooksPath", ".hooks");
    const ran = join(state, "ran");
    const { missing } = await guardedPaths(folder);
    expect(missing).toEqual([".hooks"]);
    const snapshot = FolderSnapshot.of(folder, state);
    await snapshot.prepare();
    await snapshot.begin();
    write(".hooks/post-index-change", `#!/bin/sh\ntouch ${ran}\n`);
    chmodSync(join(folder, ".hooks/post-index-change"), 0o755);
    git("add", ".");
    // Control: until the run has ended, git runs it.
    expect(existsSync(ran)).toBe(true);
    rmSync(ran);
    const ended = await snapshot.ended(missing);
    expect(ended?.disarmed).toEqual([expect.stringMatching(/^\.hooks\.ambit-disarmed-/)]);
    git("add", ".");
    expect(existsSync(ran)).toBe(false);
  });

  it("is nothing outside of a repository", async () => {
    expect(await guardedPaths(folder)).toEqual({ present: [], missing: [] });
  });
});
