// needs: git
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { removeGitLocks } from "../../src/git/in-workspace.js";
import { hostSandbox } from "../host-sandbox.js";

it("removes what a killed command of git locked, in every repository of a workspace, and nothing else", async (context) => {
  const workspace = mkdtempSync(join(tmpdir(), "ambit-locks-"));
  context.onTestFinished(() => rmSync(workspace, { recursive: true, force: true }));
  const git = (folder: string, ...args: string[]) =>
    execFileSync("git", ["-C", join(workspace, folder), ...args], { stdio: "pipe" });
  const put = (path: string) => {
    mkdirSync(join(workspace, path, ".."), { recursive: true });
    writeFileSync(join(workspace, path), "");
    return path;
  };
  for (const folder of ["app", "app/nested"]) {
    mkdirSync(join(workspace, folder));
    git(folder, "init", "--quiet");
  }
  const locks = [
    put("app/.git/index.lock"),
    put("app/.git/refs/heads/topic.lock"),
    put("app/.git/modules/one/index.lock"),
    put("app/nested/.git/HEAD.lock"),
  ];
  const others = [
    put("app/yarn.lock"),
    put("app/.git/hooks/my.lock"),
    put("app/.git/lfs/objects/a.lock"),
    put("app/node_modules/a/.git/index.lock"),
  ];
  writeFileSync(join(workspace, "app/new.txt"), "x");
  expect(() => git("app", "add", "new.txt")).toThrow("index.lock");

  const removed = await removeGitLocks(hostSandbox(workspace), AbortSignal.timeout(30_000));
  expect([...removed].sort()).toEqual([...locks].sort());
  git("app", "add", "new.txt");
  for (const path of others) expect(existsSync(join(workspace, path)), path).toBe(true);
  expect(await removeGitLocks(hostSandbox(workspace), AbortSignal.timeout(30_000))).toEqual([]);
});
