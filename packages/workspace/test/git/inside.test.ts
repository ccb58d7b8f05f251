// needs: git
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { sourceSchema } from "@ambit/core/contract";
import { describe, expect, it } from "vitest";
import { prepareGit } from "../../src/git/prepare.js";
import { hostSandbox } from "../host-sandbox.js";
import { newFolder, served } from "./served.js";

/** The workspace that a source fills, and git in it as an agent has it, without its host. */
async function filled(url: string, more: object) {
  const source = sourceSchema.parse({ type: "git", url, repository: true, ...more });
  if (source.type !== "git") throw new TypeError("not a git source");
  const { signal } = new AbortController();
  const left = { files: 100, bytes: 10_000_000 };
  const about = { index: 0, source, folder: newFolder(), left, maxEntries: 1_000, signal };
  const prepared = await prepareGit({ ...about, open: async () => hostSandbox(newFolder()) });
  const workspace = newFolder();
  const put = async (entries: NonNullable<typeof prepared.repository> | typeof prepared.entries) => {
    for await (const entry of entries) {
      if (!("path" in entry)) continue;
      mkdirSync(dirname(join(workspace, entry.path)), { recursive: true });
      writeFileSync(join(workspace, entry.path), entry.content, { mode: entry.executable ? 0o755 : 0o644 });
    }
  };
  await put(prepared.entries);
  await put(prepared.repository ?? []);
  await prepared.close();
  const env = { PATH: process.env.PATH, HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" };
  const git = (...args: readonly string[]) =>
    new Promise<{ readonly printed: string; readonly failed: string }>((resolve) => {
      const all = ["-c", "user.name=Agent", "-c", "user.email=agent@example.com", ...args];
      execFile("git", all, { cwd: workspace, env, timeout: 20_000 }, (error, printed, stderr) =>
        resolve({ printed, failed: error === null ? "" : `${error.code}: ${stderr}` }),
      );
    });
  return { workspace, git };
}

const files = {
  "a.txt": "one\n",
  "src/b.txt": "b\n",
  "docs/c.txt": "c\n",
  "docs/.gitignore": "*.tmp\n",
  ".gitignore": "*.log\n",
  ".gitattributes": "*.crlf text eol=crlf\n",
  "src/lines.crlf": "x\n",
  "[s]/* ": "odd\n",
  "s/other": "not\n",
};

/** With a second commit that changes files on both sides. */
async function host(isPartial = true) {
  const made = await served(files, "src/link", isPartial);
  made.write("src/b.txt", "b\nb\n");
  made.write("docs/c.txt", "c\nc\n");
  made.git("commit", "-qam", "Second");
  const commit = made.git("rev-parse", "HEAD");
  return { ...made, commit };
}

describe.for([true, false])(
  "git in a part of a repository, of a host with partial clones: %s",
  { timeout: 60_000 },
  (isPartial) => {
    it("has its files with the attributes of folders above, and tells no difference", async () => {
      const { url, server, commit } = await host(isPartial);
      const { git, workspace } = await filled(url, { sparse: ["src", "[s]"], depth: 2 });
      server.close();
      expect(await git("status", "--porcelain", "--branch")).toEqual({
        printed: "## main...origin/main\n",
        failed: "",
      });
      expect((await git("rev-parse", "HEAD")).printed.trim()).toBe(commit);
      expect(readFileSync(join(workspace, "src/lines.crlf"), "utf8")).toBe("x\r\n");
      expect(readFileSync(join(workspace, "[s]/* "), "utf8")).toBe("odd\n");
      for (const path of ["a.txt", "docs", "s", ".gitattributes", "src/link"])
        expect(existsSync(join(workspace, path)), path).toBe(false);
    });

    it("compares the commits that were fetched, without their host", async () => {
      const { url, server } = await host(isPartial);
      const { git } = await filled(url, { sparse: ["src"], depth: 2 });
      server.close();
      const stat = " docs/c.txt | 1 +\n src/b.txt  | 1 +\n 2 files changed, 2 insertions(+)\n";
      expect(await git("diff", "--stat", "HEAD~1")).toEqual({ printed: stat, failed: "" });
      expect((await git("log", "-p", "--stat", "--format=%s")).failed).toBe("");
      expect((await git("log", "--format=%s")).printed).toBe("Second\nFirst\n");
      expect((await git("fsck")).failed).toBe("");
    });

    it("commits what changed, and keeps the files that aren't there", async () => {
      const { url, server, git: onHost, commit } = await host(isPartial);
      const { git, workspace } = await filled(url, { sparse: ["src"], depth: 2 });
      server.close();
      writeFileSync(join(workspace, "src/b.txt"), "changed\n");
      writeFileSync(join(workspace, "src/new.txt"), "new\n");
      writeFileSync(join(workspace, "src/made.log"), "ignored by a rule that isn't there\n");
      // Git asks for the rules of a folder that is only in the index.
      mkdirSync(join(workspace, "docs"));
      writeFileSync(join(workspace, "docs/x.tmp"), "ignored\n");
      expect((await git("status", "--porcelain")).printed).toBe(" M src/b.txt\n?? src/new.txt\n");
      expect((await git("add", "-A")).failed).toBe("");
      expect((await git("commit", "-qm", "Changed")).failed).toBe("");
      const listed = (text: string) => text.trim().split("\n");
      const before = listed(onHost("ls-tree", "-r", commit));
      const after = listed((await git("ls-tree", "-r", "HEAD")).printed);
      expect(after.filter((line) => !before.includes(line)).map((line) => line.split("\t")[1])).toEqual([
        "src/b.txt",
        "src/new.txt",
      ]);
      expect(after).toHaveLength(before.length + 1);
      expect((await git("status", "--porcelain")).printed).toBe("");
    });

    it("stays a part when git writes files again, and brings no link back", async () => {
      const { url, server } = await host(isPartial);
      const { git, workspace } = await filled(url, { sparse: ["src/", "[s]"], depth: 2 });
      server.close();
      writeFileSync(join(workspace, "src/b.txt"), "changed\n");
      expect((await git("stash", "--quiet")).failed).toBe("");
      expect((await git("switch", "--quiet", "--detach", "HEAD~1")).failed).toBe("");
      expect(readFileSync(join(workspace, "src/b.txt"), "utf8")).toBe("b\n");
      expect((await git("switch", "--quiet", "main")).failed).toBe("");
      expect((await git("stash", "pop", "--quiet")).failed).toBe("");
      expect((await git("status", "--porcelain")).printed).toBe(" M src/b.txt\n");
      expect(readFileSync(join(workspace, "[s]/* "), "utf8")).toBe("odd\n");
      for (const path of ["a.txt", "docs", "s", "src/link"])
        expect(existsSync(join(workspace, path)), path).toBe(false);
    });
  },
);

describe("git in a part of a repository", { timeout: 60_000 }, () => {
  it("has the same files as without .git", async () => {
    const { url } = await host();
    const { workspace } = await filled(url, { sparse: ["src"], repository: false });
    expect(readdirSync(workspace, { recursive: true }).map(String).toSorted()).toEqual([
      "src",
      "src/b.txt",
      "src/lines.crlf",
    ]);
    expect(readFileSync(join(workspace, "src/lines.crlf"), "utf8")).toBe("x\r\n");
  });

  it("gets objects, index and what Ambit writes, and nothing else of the host's", async () => {
    const { url } = await host();
    const { workspace } = await filled(url, { sparse: ["src"], depth: 2 });
    const names = readdirSync(join(workspace, ".git"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => relative(join(workspace, ".git"), join(parentPath, name)));
    const known = ["HEAD", "config", "index", "shallow", "info/sparse-checkout"];
    known.push("refs/heads/main", "refs/remotes/origin/main");
    const isKnown = (name: string) =>
      known.includes(name) || /^objects\/pack\/pack-[0-9a-f]{40}\.(?:pack|idx|promisor)$/.test(name);
    expect(names.filter((name) => !isKnown(name))).toEqual([]);
    expect(readFileSync(join(workspace, ".git/info/sparse-checkout"), "utf8")).toBe("/src\n!/src/link\n");
  });

  it("fails at once with git's own words for a content that is missing; the control has it from its host", async () => {
    const { url, server } = await host();
    const { git } = await filled(url, { sparse: ["src"] });
    expect((await git("show", "HEAD:a.txt")).printed).toBe("one\n");
    const { git: later } = await filled(url, { sparse: ["src"] });
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    const started = Date.now();
    expect((await later("show", "HEAD:a.txt")).failed).toMatch(/unable to access.*could not fetch/s);
    expect(Date.now() - started).toBeLessThan(10_000);
    expect(await later("status", "--porcelain")).toEqual({ printed: "", failed: "" });
  });

  it("compares a merge with its first parent", async () => {
    const { url, server, git: onHost, write } = await host();
    onHost("switch", "-qc", "side", "HEAD~1");
    write("docs/side.txt", "side\n");
    onHost("add", "-A");
    onHost("commit", "-qm", "Side");
    onHost("switch", "-q", "main");
    onHost("merge", "-q", "--no-edit", "side");
    const { git } = await filled(url, { sparse: ["src"], depth: 3 });
    server.close();
    expect((await git("diff", "HEAD~1")).printed).toContain("+side");
    expect((await git("diff", "HEAD~2")).failed).toBe("");
    expect((await git("log", "-p")).failed).toBe("");
    expect((await git("show")).failed).toBe("");
  });
});
