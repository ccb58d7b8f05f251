// needs: jail
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Sandbox } from "@ambit/core/plugin";
import { describe, expect, test } from "vitest";
import { findProtectedPaths, scanHardLinks } from "../../../src/confined/files/workspace-rules.js";
import { openConfined, run, shell, temporaryFolder } from "../../support/specs.js";

/** A workspace of files (`content`), links (`-> target`) and folders (`/`). */
async function workspaceOf(entries: Readonly<Record<string, string>>): Promise<string> {
  const root = await temporaryFolder();
  for (const [path, content] of Object.entries(entries)) {
    const place = join(root, path);
    await mkdir(dirname(place), { recursive: true });
    if (content === "/") await mkdir(place, { recursive: true });
    else if (content.startsWith("-> ")) await symlink(content.slice(3), place);
    else await writeFile(place, content);
  }
  return root;
}

describe("protected paths are found at their real place", () => {
  test.each<[string, Record<string, string>, string[]]>([
    [
      "as folders and files",
      { ".git/hooks": "/", ".git/config": "x", ".idea": "/" },
      [".git/config", ".git/hooks", ".idea"],
    ],
    ["not there", { src: "/" }, []],
    ["behind a folder that is a link", { ".git": "-> real", "real/hooks": "/" }, ["real/hooks"]],
    ["behind a link as resolved inside", { ".git": "-> /workspace/real", "real/hooks": "/" }, ["real/hooks"]],
    ["as a link", { ".mcp.json": "-> conf/mcp.json", "conf/mcp.json": "{}" }, ["conf/mcp.json"]],
    ["hooks that are a link", { ".git/hooks": "-> ../tools/hooks", "tools/hooks": "/" }, ["tools/hooks"]],
    [
      "outside: doesn't exist inside",
      { ".git": "-> /etc", ".mcp.json": "-> ../../../etc/passwd", ".idea": "-> /" },
      [],
    ],
    [
      "a link to nothing, and to itself",
      { ".git": "-> nothing", ".idea": "-> .idea", ".mcp.json": "-> .git" },
      [],
    ],
    [
      "a separate folder for git",
      { ".git": "gitdir: store\n", "store/hooks": "/", "store/config": "x" },
      [".git", "store/config", "store/hooks"],
    ],
    ["a folder for git elsewhere", { ".git": "gitdir: /elsewhere/store\n" }, [".git"]],
    ["a file that isn't git's", { ".git": "\0\u0001".repeat(9_000), ".idea": "a file" }, [".git", ".idea"]],
    [
      "a worktree, whose settings are its repository's",
      {
        "main/.git/hooks": "/",
        "main/.git/config": "x",
        "main/.git/worktrees/tree/commondir": "../..\n",
        "tree/.git": "gitdir: /workspace/main/.git/worktrees/tree\n",
      },
      ["main/.git/config", "main/.git/hooks", "tree/.git"],
    ],
    [
      "a submodule",
      { "lib/.git": "gitdir: ../.git/modules/lib\n", ".git/modules/lib/hooks": "/", ".git/hooks": "/" },
      [".git/hooks", ".git/modules/lib/hooks", "lib/.git"],
    ],
    ["a repository far below", { "a/b/c/.git/hooks": "/" }, ["a/b/c/.git/hooks"]],
  ])("%s", async (_what, entries, found) => {
    const workspace = await workspaceOf(entries);
    const { repositories } = await scanHardLinks(workspace);
    const kept = [".git/hooks", ".git/config", ".idea", ".mcp.json"];
    expect(await findProtectedPaths(workspace, kept, repositories)).toEqual(found);
  });

  test("of the first 64 repositories, however many there are", async () => {
    const many = Array.from({ length: 70 }, (_, index) => [`r${index}/.git/hooks`, "/"]);
    const { repositories } = await scanHardLinks(await workspaceOf(Object.fromEntries(many)));
    expect(repositories).toHaveLength(64);
  });
});

const shapes: readonly [string, string, string][] = [
  ["a file", "git init -q --separate-git-dir=store .", "store"],
  ["a link", "git init -q store.repo; mv store.repo/.git store; ln -s store .git", "store"],
  ["a repository below", "git init -q lib/part", "lib/part/.git"],
  [
    "a worktree's file",
    "git init -q main; cd main; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a; git worktree add -q ../tree",
    "main/.git",
  ],
];

const attack = (git: string) => `
echo evil >> ${git}/hooks/post-commit && echo hook
echo evil >> ${git}/config && echo config
mv ${git}/hooks ${git}/other && mkdir ${git}/hooks && echo replaced
mv ${git} ${git}.away && echo moved
echo ran`;

async function attacked(sandbox: Sandbox, setUp: string, git: string): Promise<string> {
  const first = await run(sandbox, shell(`${setUp} && mkdir -p /workspace/${git}/hooks && echo made`), {
    role: "agent",
  });
  expect(first).toMatchObject({ stdout: "made\n", code: 0 });
  return (await run(sandbox, shell(attack(git)), { role: "agent" })).stdout;
}

describe("a repository's hooks and settings are protected if .git is", () => {
  test.each(shapes)("%s", async (_what, setUp, git) => {
    // The control: without protection the attack works.
    expect(await attacked(await openConfined({}, { config: { protectedPaths: [] } }), setUp, git)).toBe(
      "hook\nconfig\nreplaced\nmoved\nran\n",
    );
    expect(await attacked(await openConfined(), setUp, git)).toBe("ran\n");
  });
});

test("settings that an agent turns into links, files or pipes don't keep a later jail from starting", async () => {
  const sandbox = await openConfined();
  const setUp = `
    ln -s /etc .git; ln -s loop .claude; ln -s .claude loop; ln -s ../../.. .vscode; echo x > .idea
    mkfifo .mcp.json; ln -s /proc/self/fd .gemini; mkdir .codex; ln -s /dev/zero .codex/config.toml; echo made`;
  for (const role of ["agent", "tool"] as const) {
    const command = role === "agent" ? setUp : "echo again";
    const { stdout } = await run(sandbox, shell(command), role === "agent" ? { role } : {});
    expect(stdout).toBe(role === "agent" ? "made\n" : "again\n");
  }
});

test("a path of the request that became a link refuses the jail and is named", async () => {
  const sandbox = await openConfined({
    filesystem: { mode: "workspace", readable: ["docs"], writable: [], denied: [] },
  });
  await run(sandbox, shell("ln -s /etc docs"));
  await expect(run(sandbox, ["true"])).rejects.toThrow(
    "The boundary's readable path \"docs\" can't be reached in the workspace without following links: there is a link or a file in the path",
  );
});
