import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { serveGit } from "@ambit/fakes/git-http-backend";
import { listening } from "@ambit/fakes/listening";
import { onTestFinished } from "vitest";

export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "ambit-git-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const people = ["-c", "user.name=Host", "-c", "user.email=host@example.com"];
const plain = { PATH: process.env.PATH, HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" };

/** A repository that a host serves, and its one commit. @param isPartial whether the host leaves contents out when asked */
export async function served(files: Readonly<Record<string, string>>, link?: string, isPartial = true) {
  const folder = newFolder();
  const made = join(folder, "app.git");
  const git = (...args: readonly string[]) =>
    execFileSync("git", [...people, ...args], { cwd: made, env: plain, stdio: ["ignore", "pipe", "pipe"] })
      .toString()
      .trim();
  const write = (name: string, content: string) => {
    mkdirSync(dirname(join(made, name)), { recursive: true });
    writeFileSync(join(made, name), content);
  };
  for (const [name, content] of Object.entries(files)) write(name, content);
  if (link !== undefined) symlinkSync("a.txt", join(made, link));
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-qm", "First");
  const server = createServer((request, response) =>
    serveGit(folder, request, response, undefined, { isPartial }),
  );
  const port = await listening(server, onTestFinished);
  return {
    url: `http://127.0.0.1:${port}/app.git/.git`,
    commit: git("rev-parse", "HEAD"),
    git,
    write,
    server,
  };
}
