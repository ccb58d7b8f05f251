// needs: git
import { Readable } from "node:stream";
import { sourceSchema } from "@ambit/core/contract";
import type { Command, Sandbox } from "@ambit/core/plugin";
import { describe, expect, it, onTestFinished } from "vitest";
import { prepareGit } from "../../src/git/prepare.js";
import { pushChanges } from "../../src/git/push.js";
import { Spool } from "../../src/spool.js";
import { hostSandbox } from "../host-sandbox.js";
import { newFolder, served } from "./served.js";

/** A sandbox that keeps which processes were started in it. */
function counting(): { readonly sandbox: Sandbox; readonly commands: Command[] } {
  const commands: Command[] = [];
  const inner = { ...hostSandbox(newFolder()), placeholders: { TOKEN: "placeholder-of-the-token" } };
  const spawn: Sandbox["spawn"] = (command) => {
    commands.push(command);
    return inner.spawn(command);
  };
  return { sandbox: { ...inner, spawn }, commands };
}

async function opened(url: string, more: object = {}) {
  const { sandbox, commands } = counting();
  const source = sourceSchema.parse({ type: "git", url, ...more });
  if (source.type !== "git") throw new TypeError("not a git source");
  const { signal } = new AbortController();
  const left = { files: 100, bytes: 10_000_000 };
  const percents: number[] = [];
  const received = (percent: number) => percents.push(percent);
  const about = { index: 0, source, folder: newFolder(), left, maxEntries: 1_000, signal, received };
  const prepared = await prepareGit({ ...about, open: async () => sandbox });
  const paths: string[] = [];
  for await (const entry of prepared.entries) if ("path" in entry) paths.push(entry.path);
  await prepared.close();
  return { paths, commands, prepared, percents };
}

const files = { "a.txt": "one", "b/c.txt": "two" };

describe("a git source starts few processes, since each one has a jail of its own", () => {
  it.for<[what: string, more: object, link: string | undefined, processes: number]>([
    ["plain: fetch, write, collect", {}, undefined, 3],
    ["as a repository: it is collected too", { repository: true }, undefined, 4],
    ["as a repository with a link: the index is marked", { repository: true }, "link", 5],
    ["sparse: its contents are fetched", { sparse: ["b", "a.txt"] }, undefined, 4],
    ["sparse, as a repository", { sparse: ["b", "a.txt"], repository: true, depth: 2 }, undefined, 5],
    ["with git LFS: pointers are read", { lfs: true }, undefined, 4],
    ["with submodules: there are none", { submodules: true }, undefined, 3],
  ])("%s", async ([, more, link, processes]) => {
    const { url, commit } = await served(files, link);
    const { paths, commands, prepared, percents } = await opened(url, more);
    expect(paths.sort()).toEqual(["a.txt", "b/c.txt"]);
    expect(prepared.facts).toMatchObject({ commit });
    expect(commands).toHaveLength(processes);
    expect(percents.at(-1)).toBe(100);
  });

  it("and placeholders of credentials go to those that reach the host", async () => {
    const { url } = await served(files);
    const { commands } = await opened(url);
    expect(commands.map(({ env }) => "TOKEN" in env)).toEqual([true, false, false]);
    const { commands: withLfs } = await opened(url, { lfs: true });
    expect(withLfs.map(({ env }) => "TOKEN" in env)).toEqual([true, false, true, false]);
  });
});

describe("a push starts few processes, since each one has a jail of its own", () => {
  async function pushed(more: object = {}, changed = "a.txt") {
    const { url, commit: base, git } = await served(files);
    git("config", "receive.denyCurrentBranch", "ignore");
    const { sandbox, commands } = counting();
    const spool = await Spool.open(newFolder());
    onTestFinished(() => spool.close());
    const after = { ...(await spool.add(Readable.from([Buffer.from("three")]))), executable: false };
    const author = { name: "Robot", email: "robot@example.com" };
    let bundle = "";
    const done = await pushChanges({
      output: { branch: "fix", message: "Fix it", author, push: "branch" },
      url,
      base,
      isContinued: false,
      changes: [{ path: changed, before: undefined, after }],
      spool,
      sandbox,
      maxFileBytes: 10_000_000,
      at: 0,
      sign: undefined,
      keep: async (bytes) => {
        for await (const part of bytes) bundle += Buffer.from(part).toString("latin1");
        return { sha256: "0".repeat(64), size: bundle.length };
      },
      signal: new AbortController().signal,
      ...more,
    });
    expect(done).toMatchObject({ commit: git("rev-parse", "fix"), base });
    expect(git("show", `fix:${changed}`)).toBe("three");
    expect(bundle).toMatch(/^# v2 git bundle\n/);
    return { commands, git };
  }

  it("of which those that reach the host get placeholders", async () => {
    const { commands } = await pushed();
    expect(commands.map(({ env }) => "TOKEN" in env)).toEqual([true, false, true]);
  });

  it("one more where the runner signs the commit", async () => {
    const { commands, git } = await pushed({ sign: () => "a signature\n" });
    expect(commands).toHaveLength(4);
    expect(git("cat-file", "commit", "fix")).toContain("gpgsig a signature\n");
  });

  it("one more for each question about what changed", async () => {
    expect((await pushed({}, ".gitattributes")).commands).toHaveLength(4);
    expect((await pushed({ isContinued: true })).commands).toHaveLength(4);
  });
});
