// needs: jail, git
import { existsSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it, type TestContext } from "vitest";
import { demo, type Server } from "../support/ambit.js";
import type { Forge } from "../support/forge/forge.js";
import { startForgeServer } from "../support/forge/forge-server.js";

const token = `ghp_${"partial0".repeat(5)}`;
let forge: Forge;
let server: Server;

beforeAll(async () => {
  const started = await startForgeServer({ [token]: { fetch: /^\/acme\//, push: /^\/acme\// } });
  ({ forge, server } = started);
  return started.close;
}, 120_000);

function needLfs(context: TestContext): void {
  if (!existsSync("/usr/bin/git-lfs")) context.skip("host: no git-lfs: apt-get install git-lfs");
}

/** What the agent's command printed, and what Ambit made of what it changed. The agent has no network. */
async function run(path: string, source: object, branch: string, script: readonly string[]) {
  const body = {
    ...demo(`run ${script.join("; ")}`, "say done"),
    sandboxPermission: { network: "off", filesystem: "workspace" },
    workspace: {
      gitUser: { name: "Ada", email: "ada@example.com" },
      sources: [
        { type: "git", url: forge.url(path), credential: { value: token }, repository: true, ...source },
      ],
    },
    outputs: {
      patch: true,
      git: {
        branch,
        message: "Change it",
        author: { name: "Robot", email: "robot@acme.example" },
        credential: { value: token },
      },
    },
  };
  const text = await (await server.post("/run", body)).text();
  expect(text + server.log()).not.toContain(token);
  const result = JSON.parse(text);
  expect(result, server.log()).toMatchObject({ ok: true, output: "done" });
  const ended = result.events.find(({ type }: { type: string }) => type === "tool_result");
  const { outputs } = result.receipt;
  return { printed: String(ended.output), changes: outputs.patch.changes, commit: outputs.git };
}

/** What a branch has that the first one hasn't, as names and how they changed. */
const changed = (path: string, branch: string) =>
  forge.git(path, "diff", "--name-status", "--no-renames", "main", branch).split("\n");

const attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n*.odd filter=odd\n";

function repository(path: string, files: Readonly<Record<string, string>> = {}): string {
  return forge.repository(
    path,
    {
      "src/a.txt": "one\n",
      "src/gone.txt": "gone\n",
      "docs/b.txt": "docs\n",
      ".gitattributes": attributes,
      ...files,
    },
    (git, made) => {
      symlinkSync("a.txt", join(made, "src/link"));
      git("add", "-A");
    },
  );
}

describe("git in a part of a repository", { timeout: 180_000 }, () => {
  it("tells what changed, and neither its commit nor Ambit's lacks what isn't there", async () => {
    const base = repository("acme/part");
    const { printed, changes, commit } = await run("acme/part", { sparse: ["src"], depth: 5 }, "fix", [
      "git status --porcelain",
      "echo begun; ls -A . src",
      "echo two >> src/a.txt; rm src/gone.txt; echo new > src/new.txt",
      "git status --porcelain",
      "git add -A && git commit --quiet --message Mine",
      "git diff --name-status HEAD~1",
      "git log --format=subject:%s",
      "git show HEAD:docs/b.txt",
      "echo ended with $?",
    ]);
    expect(printed).toMatch(/^begun\n/);
    expect(printed).toContain(".:\n.git\nsrc\n\nsrc:\na.txt\ngone.txt\n");
    expect(printed).toContain(" M src/a.txt\n D src/gone.txt\n?? src/new.txt\n");
    expect(printed).toContain("M\tsrc/a.txt\nD\tsrc/gone.txt\nA\tsrc/new.txt\nsubject:Mine\n");
    // What is missing can't be fetched, which git says at once.
    expect(printed).toMatch(/fatal: could not fetch \w+ from promisor remote\nended with 128/);
    expect(changes.map(({ path }: { path: string }) => path)).toEqual([
      "src/a.txt",
      "src/gone.txt",
      "src/new.txt",
    ]);
    expect(commit).toMatchObject({ base, branch: "fix", pushed: true });
    expect(changed("acme/part", "fix")).toEqual(["M\tsrc/a.txt", "D\tsrc/gone.txt", "A\tsrc/new.txt"]);
  });
});

describe("git in a repository with contents in git LFS", { timeout: 180_000 }, () => {
  it("commits another file without them, and finds them again", async (context) => {
    needLfs(context);
    const pointer = forge.lfs("the large content");
    repository("acme/large", { "src/large.bin": pointer, "docs/same.bin": pointer });
    const { printed, commit } = await run("acme/large", { lfs: true }, "fix", [
      "git status --porcelain",
      "echo begun; cat src/large.bin; echo",
      "echo two >> src/a.txt; touch src/large.bin docs/same.bin",
      "git commit --quiet --all --message Mine",
      "git show --name-only --format=",
      "echo other > src/large.bin; git status --porcelain",
      "git checkout --quiet src/large.bin; cat src/large.bin; echo",
      "git stash --quiet; git status --porcelain; echo ended",
    ]);
    expect(printed).toBe("begun\nthe large content\nsrc/a.txt\n M src/large.bin\nthe large content\nended\n");
    expect(commit).toMatchObject({ branch: "fix" });
    expect(changed("acme/large", "fix")).toEqual(["M\tsrc/a.txt"]);
  });

  it("has a changed content in its own commit and in Ambit's, as a pointer", async (context) => {
    needLfs(context);
    repository("acme/changed", { "src/large.bin": forge.lfs("before") });
    const { printed, changes } = await run("acme/changed", { lfs: true, sparse: ["src"] }, "fix", [
      "git status --porcelain",
      "cat src/large.bin; printf after > src/large.bin",
      "git commit --quiet --all --message Mine; git show HEAD:src/large.bin",
    ]);
    const oid = forge.lfs("after").match(/[0-9a-f]{64}/)?.[0] ?? "";
    expect(printed).toMatch(/^beforeversion /);
    expect(printed).toContain(`oid sha256:${oid}\nsize 5\n`);
    expect(changes).toMatchObject([{ path: "src/large.bin", change: "modified", sha256: oid }]);
    expect(changed("acme/changed", "fix")).toEqual(["M\tsrc/large.bin"]);
    expect(forge.git("acme/changed", "show", "fix:src/large.bin")).toContain(`oid sha256:${oid}\nsize 5`);
    const uploads = forge.served.filter(({ method, url }) => method === "PUT" && url.includes(oid));
    expect(uploads).toHaveLength(1);
  });

  it("takes none of them for a change where git LFS is missing: it fails", async (context) => {
    needLfs(context);
    repository("acme/without", { "src/large.bin": forge.lfs("the large content") });
    const { printed } = await run("acme/without", { lfs: true }, "fix", [
      // In the order in which it is said.
      "exec 2>&1; echo two >> src/a.txt; mkdir /tmp/bin; ln -s /usr/bin/git /tmp/bin; export PATH=/tmp/bin",
      "git commit --all --message Mine; echo first $?; git log --format=subject:%s",
      // The control: without Ambit's settings, git takes them.
      "git -c filter.lfs.process= -c filter.lfs.clean= -c filter.lfs.required=false commit --quiet --all -m Mine; echo second $?",
      "git show HEAD:src/large.bin",
    ]);
    // Git says more where the filter is gone before it writes to it.
    expect(printed).toMatch(
      /git-lfs: not found\n(?:error: [^\n]*\n)*fatal: [^\n]*\nfirst 128\nsubject:The first commit\nsecond 0\nthe large content$/s,
    );
  });
});

describe("git inside executes nothing that a repository carries", { timeout: 180_000 }, () => {
  it.for<[what: string, source: object]>([
    ["in a part of it", { sparse: ["src"] }],
    ["with git LFS", { lfs: true }],
    ["in a part of it with git LFS", { sparse: ["src"], lfs: true }],
  ])("%s", async ([what, source], context) => {
    needLfs(context);
    const path = `acme/hostile-${what.replaceAll(" ", "-")}`;
    const touch = "touch /tmp/executed";
    const settings = [
      `[filter "odd"]\n\tclean = ${touch}\n\tsmudge = ${touch}\n[core]\n\tfsmonitor = ${touch}\n\thooksPath = hooks`,
      `[lfs]\n\tstandalonetransferagent = odd\n[lfs "customtransfer.odd"]\n\tpath = touch\n\targs = /tmp/executed`,
    ].join("\n");
    repository(path, {
      ".lfsconfig": settings,
      ".gitmodules": `[submodule "x"]\n\tpath = x\n\turl = ../x\n${settings}`,
      "hooks/post-index-change*": `#!/bin/sh\n${touch}\n`,
      "src/.lfsconfig": settings,
      "src/a.odd": "odd\n",
      "src/large.bin": forge.lfs("the large content"),
    });
    const { printed } = await run(path, source, "fix", [
      "git status --porcelain; echo two >> src/a.txt; echo >> src/a.odd; echo x > src/large.bin",
      "git add -A; git commit --quiet --message Mine; git switch --quiet -c other; git stash list",
      "ls /tmp/executed",
      // The control: as a setting of git's own.
      `echo >> src/a.odd; git -c 'filter.odd.clean=${touch}; cat' add src/a.odd; ls /tmp/executed`,
    ]);
    expect(printed).toMatch(/cannot access '\/tmp\/executed'.*\n\/tmp\/executed\n$/s);
  });
});
