// needs: jail, git
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { demo, type Server } from "../support/ambit.js";
import type { Forge } from "../support/forge/forge.js";
import { startForgeServer } from "../support/forge/forge-server.js";

const reader = `ghp_${"reader00".repeat(5)}`;
let forge: Forge;
let server: Server;

beforeAll(async () => {
  const started = await startForgeServer(
    { [reader]: { fetch: /^\/acme\// } },
    { workspace: { maxSourceFiles: 60, maxSourceMiB: 2 } },
  );
  ({ forge, server } = started);
  return started.close;
}, 120_000);

const closed = { sandboxPermission: { network: "off", filesystem: "workspace" } };
const source = (path: string, more: object = {}) => ({
  type: "git",
  url: forge.url(path),
  credential: { value: reader },
  repository: true,
  ...more,
});

async function run(workspace: object, script: string, more: object = {}) {
  const body = { ...demo(`run ${script}`, "say done"), ...closed, workspace, ...more };
  const result = JSON.parse(await (await server.post("/run", body)).text());
  expect(JSON.stringify(result) + server.log()).not.toContain(reader);
  return result;
}

/** What the agent's command printed. */
async function printedBy(workspace: object, script: string, more: object = {}) {
  const result = await run(workspace, script, more);
  expect(result, server.log()).toMatchObject({ ok: true, output: "done" });
  const ended = result.events.find(({ type }: { type: string }) => type === "tool_result");
  return { printed: JSON.stringify(ended), receipt: result.receipt };
}

/** A history of three commits. */
function withHistory(path: string): { readonly first: string; readonly last: string } {
  const first = forge.repository(path, { "src/a.txt": "one\n", "run.sh*": "#!/bin/sh\n" });
  const tree = forge.git(path, "rev-parse", `${first}^{tree}`);
  const second = forge.git(path, "commit-tree", tree, "-p", first, "-m", "Second");
  const last = forge.git(path, "commit-tree", tree, "-p", second, "-m", "Third");
  forge.git(path, "update-ref", "refs/heads/main", last);
  return { first, last };
}

describe("a git source that comes as a repository", { timeout: 180_000 }, () => {
  it("lets git inside tell status, differences and history, and commit as the user that was named", async () => {
    const { last } = withHistory("acme/app");
    const gitUser = { name: 'Ada "The" Agent', email: "ada@example.com" };
    const { printed, receipt } = await printedBy(
      { sources: [source("acme/app", { depth: 2 })], gitUser },
      [
        "git status --porcelain --branch",
        "git log --format=subject:%s",
        "echo two >> src/a.txt",
        "git diff --stat",
        "git commit --quiet --all --message Changed",
        "git log -1 --format='%an <%ae> %s parent:%P'",
        "git fsck --full",
        "cat .git/HEAD .git/config ~/.gitconfig",
        "grep -r x-access-token .git ~; ls .git/hooks",
      ].join("; "),
      { outputs: { include: ["**"], patch: true } },
    );
    expect(printed).toContain("## main...origin/main\\n");
    expect(printed).not.toMatch(/origin\/main\\n [MD?]/);
    expect(printed.match(/subject:\w+/g)).toEqual(["subject:Third", "subject:Second"]);
    expect(printed).toContain("src/a.txt | 1 +");
    expect(printed).toContain(`<ada@example.com> Changed parent:${last}`);
    expect(printed).toContain("Ada ");
    expect(printed).toContain("ref: refs/heads/main");
    expect(printed).not.toMatch(/dangling|missing|broken|error|fatal/);
    // Two files came in, and nothing below .git leaves.
    expect(receipt.sources).toMatchObject([{ commit: last, files: 2 }]);
    expect(receipt.outputs.files.map(({ path }: { path: string }) => path)).toEqual(["run.sh", "src/a.txt"]);
    expect(receipt.outputs.patch.changes).toMatchObject([{ path: "src/a.txt" }]);
  });

  it("comes without it where it isn't asked for, with the same digest of its files", async () => {
    withHistory("acme/plain");
    const one = await printedBy({ sources: [source("acme/plain")] }, "git rev-parse HEAD; ls -A");
    const two = await printedBy(
      { sources: [source("acme/plain", { repository: false })] },
      "git rev-parse HEAD; ls -A",
    );
    expect(one.printed).toContain(".git");
    expect(two.printed).toContain("fatal: not a git repository");
    expect(two.receipt.sources[0].sha256).toBe(one.receipt.sources[0].sha256);
  });

  it("is at a tag or a commit without a branch, in the folder that was named", async () => {
    const { first } = withHistory("acme/tagged");
    forge.git("acme/tagged", "tag", "-m", "A tag", "v1", first);
    forge.git("acme/tagged", "branch", "topic/one", first);
    const { printed } = await printedBy(
      {
        sources: [
          source("acme/tagged", { ref: "v1", into: "tag" }),
          source("acme/tagged", { commit: first, into: "commit" }),
          source("acme/tagged", { ref: "topic/one", into: "branch" }),
        ],
      },
      "for at in tag commit branch; do (cd $at; echo $at:$(git rev-parse HEAD) $(git status --short --branch).); done",
    );
    expect(printed).toContain(`tag:${first} ## HEAD (no branch).`);
    expect(printed).toContain(`commit:${first} ## HEAD (no branch).`);
    expect(printed).toContain(`branch:${first} ## topic/one...origin/topic/one.`);
  });

  it("doesn't show a link that was left out as deleted, nor a submodule that was left out", async () => {
    const part = forge.repository("acme/part", { "part.txt": "of the submodule" });
    const files = {
      "a.txt": "text\n",
      ".gitmodules": `[submodule "part"]\npath = vendor/part\nurl = ../part\n`,
    };
    forge.repository("acme/linked", files, (git, made) => {
      symlinkSync("a.txt", join(made, "link"));
      git("add", "-A");
      git("update-index", "--add", "--cacheinfo", `160000,${part},vendor/part`);
    });
    const credential = { value: reader, paths: ["/acme/part/*"] };
    const status = "git status --short --branch; ls -A; git ls-files";
    for (const submodules of [false, true]) {
      const { printed } = await printedBy(
        { sources: [source("acme/linked", { submodules, credential })] },
        status,
      );
      expect(printed).toContain("## main...origin/main\\n.git\\n");
      expect(printed).toContain("\\nlink\\n");
    }
  });

  it("brings no setting, hook or command of the repository or its host", async () => {
    forge.repository("acme/settings", { "a.txt": "text\n" });
    forge.git("acme/settings", "config", "core.fsmonitor", "touch /tmp/executed");
    forge.git("acme/settings", "update-ref", "refs/heads/other", "refs/heads/main");
    const { printed } = await printedBy(
      { sources: [source("acme/settings")] },
      "git config --list --local; git for-each-ref; find .git -type f",
    );
    expect(printed).not.toMatch(/fsmonitor|hooks|refs\/heads\/other|refs\/ambit|credential|http\./);
    expect(printed).toContain("remote.origin.url=https://");
  });

  it("counts against the limits of sources", async () => {
    const first = forge.repository("acme/heavy", { "large.txt": randomText(1_500_000) });
    const small = forge.repository("acme/light", { "a.txt": "text" });
    expect(small).not.toBe(first);
    const result = await run({ sources: [source("acme/heavy")] }, "true");
    expect(result).toMatchObject({ ok: false, failure: { code: "source_failed", reason: "too_large" } });
    expect(result.error).toMatch(/maxSourceMiB/);
    expect(await run({ sources: [source("acme/heavy", { repository: false })] }, "true")).toMatchObject({
      ok: true,
    });
  });

  it("is refused by its field without a source or a user", async () => {
    const body = { ...demo("say hi"), ...closed, workspace: {} };
    const { failure } = JSON.parse(await (await server.post("/plan", body)).text());
    expect(failure.issues).toMatchObject([{ path: "workspace.sources" }]);
  });

  it("names the user of git without any source", async () => {
    const gitUser = { name: "Ada", email: "ada@example.com" };
    const script =
      "git init --quiet new; cd new; git commit --quiet --allow-empty -m x; git log --format=%an:%ae";
    expect((await printedBy({ gitUser }, script)).printed).toContain("Ada:ada@example.com");
  });
});

/** Text that git can't compress much. */
function randomText(length: number): string {
  let state = 1;
  const characters = Array.from({ length }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return String.fromCharCode(33 + (state % 90));
  });
  return characters.join("");
}
