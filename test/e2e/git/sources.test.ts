// needs: jail, git
import { execFileSync } from "node:child_process";
import { existsSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { demo, emptyFolder, type Server } from "../support/ambit.js";
import type { Forge } from "../support/forge/forge.js";
import { startForgeServer } from "../support/forge/forge-server.js";
import { servingForms } from "../support/forge/lfs-forms.js";

const reader = `ghp_${"reader00".repeat(5)}`;
const pusher = `ghp_${"pusher00".repeat(5)}`;
let forge: Forge;
let server: Server;

beforeAll(async () => {
  const started = await startForgeServer(
    { [reader]: { fetch: /^\/acme\// }, [pusher]: { push: /^\/acme\/(?!locked)/, fetch: /^\/acme\// } },
    { workspace: { maxSourceFiles: 50, maxSourceMiB: 2 } },
  );
  ({ forge, server } = started);
  return started.close;
}, 120_000);

const closed = { sandboxPermission: { network: "off", filesystem: "workspace" } };
const git = (path: string, more: object = {}) => ({
  type: "git",
  url: forge.url(path),
  credential: { value: reader },
  ...more,
});

/** A run whose agent prints what this finds. */
async function runWith(sources: readonly object[], script = "find . -type f", more: object = {}) {
  const body = { ...demo(`run ${script}`, "say done"), ...closed, workspace: { sources }, ...more };
  const result = JSON.parse(await (await server.post("/run", body)).text());
  expect(JSON.stringify(result) + server.log()).not.toContain(reader);
  return result;
}

/** With what the agent printed. */
async function printedWith(sources: readonly object[], script?: string) {
  const result = await runWith(sources, script);
  expect(result, server.log()).toMatchObject({ ok: true, output: "done" });
  const ended = result.events.find(({ type }: { type: string }) => type === "tool_result");
  return { printed: JSON.stringify(ended), sources: result.receipt.sources };
}

describe("a git repository as a source", { timeout: 180_000 }, () => {
  it("comes in with a credential that is nowhere inside, and the agent has no network", async () => {
    const commit = forge.repository("acme/app", { "src/a.txt": "one\n", "run.sh*": "#!/bin/sh\n" });
    const { printed, sources } = await printedWith(
      [git("acme/app", { ref: "main", into: "app" })],
      "cat app/src/a.txt; ls -l app; env; cat /proc/*/environ; grep -r x-access-token . ~; ls -A app ~",
    );
    const tree = forge.git("acme/app", "rev-parse", "main^{tree}");
    expect(sources).toMatchObject([{ type: "git", url: forge.url("acme/app"), commit, tree, files: 2 }]);
    expect(printed).toContain("one");
    expect(printed).toMatch(/-rwx\S+ [^\\]*run\.sh/);
    expect(printed).not.toMatch(/AMBIT_SOURCE_CREDENTIAL|GIT_CONFIG/);
    // The forge got the value itself.
    const sent = `Basic ${Buffer.from(`x-access-token:${reader}`).toString("base64")}`;
    expect(forge.served.filter(({ host }) => host === "forge.test").at(-1)?.authorization).toBe(sent);
  });

  it("is the commit, the tag or the part that was asked for", async () => {
    const first = forge.repository("acme/parts", {
      "a/one.txt": "1",
      "b/two.txt": "2",
      "b/deep/three.txt": "3",
    });
    forge.git("acme/parts", "tag", "v1", first);
    const tree = forge.git("acme/parts", "rev-parse", `${first}:b`);
    const later = forge.git("acme/parts", "commit-tree", tree, "-p", first, "-m", "Only b");
    forge.git("acme/parts", "update-ref", "refs/heads/main", later);
    const { printed, sources } = await printedWith([
      git("acme/parts", { into: "head" }),
      git("acme/parts", { commit: first, into: "commit" }),
      git("acme/parts", { ref: "v1", sparse: ["b/deep/", "a/one.txt"], into: "sparse", depth: 2 }),
    ]);
    expect(sources).toMatchObject([{ commit: later }, { commit: first }, { commit: first, files: 2 }]);
    for (const path of ["head/two.txt", "commit/b/two.txt", "sparse/b/deep/three.txt", "sparse/a/one.txt"])
      expect(printed).toContain(path);
    expect(printed).not.toContain("sparse/b/two.txt");
  });

  it("brings its private submodules and what git LFS keeps", async (context) => {
    if (!existsSync("/usr/bin/git-lfs")) context.skip("host: no git-lfs: apt-get install git-lfs");
    const part = forge.repository("acme/part", { "part.txt": "of the submodule" });
    forge.repository(
      "acme/whole",
      {
        ".gitmodules": `[submodule "part"]\npath = vendor/part\nurl = ../part\n`,
        ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
        // What it says of its server, and of what isn't downloaded, doesn't count.
        ".lfsconfig": "[lfs]\nurl = https://thief.test/lfs\nfetchexclude = *\nskipdownloaderrors = true\n",
        "large.bin": forge.lfs("the large content"),
      },
      (run) => run("update-index", "--add", "--cacheinfo", `160000,${part},vendor/part`),
    );
    const wanted = { submodules: true, lfs: true };
    const { printed, sources } = await printedWith(
      [git("acme/whole", { ...wanted, credential: { value: reader, paths: ["/acme/part/*"] } })],
      "cat large.bin vendor/part/part.txt",
    );
    expect(printed).toContain("the large contentof the submodule");
    expect(sources).toMatchObject([{ submodules: [{ path: "vendor/part", commit: part }] }]);
    expect(forge.served.some(({ host }) => host === "thief.test")).toBe(false);
    const contents = forge.served.filter(({ url }) => url.startsWith("/contents/"));
    expect(contents).toMatchObject([{ method: "GET", authorization: "" }]);
  });

  it.for(servingForms)(
    "brings what git LFS keeps at a host that answers as %s does",
    async (form, context) => {
      if (!existsSync("/usr/bin/git-lfs")) context.skip("host: no git-lfs: apt-get install git-lfs");
      const path = form === "azure" ? "acme/project/_git/app" : `acme/lfs-${form}`;
      forge.repository(path, {
        ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
        "large.bin": forge.lfs(`the content of ${form}\n`),
      });
      forge.answerLfs(path, form);
      // A path without a star is the repository's, with all below it.
      const credential = { value: reader, paths: [`/${path}.git`, `/${path}`] };
      const { printed } = await printedWith([git(path, { lfs: true, credential })], "cat large.bin");
      expect(printed).toContain(`the content of ${form}`);
    },
  );

  it("executes nothing that a repository carries, and follows none of its links", async () => {
    const folder = await emptyFolder();
    const marker = join(folder, "executed");
    const touch = `touch ${marker}`;
    const bad = [
      `[core]\n\tbare = true\n\trepositoryformatversion = 0\n\tfsmonitor = "${touch}; false"`,
      `\thooksPath = hooks\n\tsshCommand = ${touch}\n[filter "bad"]\n\tsmudge = ${touch}\n\tclean = ${touch}\n[diff "bad"]\n\ttextconv = ${touch}`,
      `[core]\n\tworktree = ..\n`,
    ].join("\n");
    forge.repository(
      "acme/hostile",
      {
        "tool/HEAD": "ref: refs/heads/main\n",
        "tool/config": bad.replace("bare = true", "bare = false"),
        "tool/objects/info/alternates": "/etc\n",
        "tool/refs/keep": "",
        "tool/hooks/post-checkout*": `#!/bin/sh\n${touch}\n`,
        ".gitattributes": "*.txt filter=bad diff=bad\n",
        "a.txt": "text\n",
      },
      (run, made) => {
        symlinkSync("/etc/passwd", join(made, "passwd"));
        symlinkSync("..", join(made, "above"));
        run("add", "-A");
      },
    );
    // The control: git as a user runs it in such a folder executes what the repository says.
    const clone = join(folder, "clone");
    forge.clone("acme/hostile", clone);
    execFileSync("git", ["status"], { cwd: join(clone, "tool"), stdio: "ignore" });
    expect(existsSync(marker)).toBe(true);
    rmSync(marker);

    const { printed, sources } = await printedWith([git("acme/hostile")], "cat passwd a.txt; ls -A");
    expect(existsSync(marker)).toBe(false);
    expect(sources[0].omitted).toEqual([
      { path: "above", reason: "link" },
      { path: "passwd", reason: "link" },
    ]);
    expect(printed).not.toContain("root:");
    expect(printed).toContain("text");
  });

  it.for<[what: string, reason: string, source: () => object, says: RegExp]>([
    [
      "with a wrong credential",
      "authentication",
      () => git("acme/app", { credential: { value: "wrong-credential" } }),
      /set `credential`/,
    ],
    ["that the credential may not see", "not_found", () => git("other/app"), /check `url`/],
    ["of a branch that isn't there", "ref_missing", () => git("acme/app", { ref: "nowhere" }), /check `ref`/],
    [
      "of a commit that isn't there",
      "ref_missing",
      () => git("acme/app", { commit: "a".repeat(40) }),
      /check `ref`/,
    ],
    [
      "on a host that doesn't answer",
      "unreachable",
      () => ({ type: "git", url: "https://127.0.0.1:9/a/b" }),
      /check the host/,
    ],
    ["with too many files", "too_large", () => git("acme/many"), /maxSourceFiles/],
    ["with too large a file", "too_large", () => git("acme/large"), /maxSourceMiB/],
    [
      "with too large a content in git LFS",
      "too_large",
      () => git("acme/pointers", { lfs: true }),
      /maxSourceMiB/,
    ],
    [
      "with a content that the host of git LFS hasn't",
      "not_found",
      () => git("acme/pointers-gitea", { lfs: true }),
      /large\.bin \(1+\): LFS: Repository or object not found: https:\/\/forge\.test/,
    ],
    [
      "with a content at a path where hosts have none",
      "forbidden",
      () => git("acme/pointers-unknown", { lfs: true }),
      /LFS: Ambit's boundary refused this request: AMBIT_SOURCE_CREDENTIAL was sent in a header that occurs twice/,
    ],
    [
      "with a content on a host that isn't listed",
      "forbidden",
      () => git("acme/pointers-unlisted", { lfs: true }),
      /must be in `lfs\.hosts` .*https:\/\/unlisted\.test\/1+\?…": Refused by Ambit's boundary/,
    ],
    ["whose submodules name a command", "checkout_failed", () => git("acme/update"), /gitmodulesUpdate/],
    [
      "with a submodule on another host",
      "forbidden",
      () => git("acme/modules", { submodules: true }),
      /submodule 'x' on another host/,
    ],
  ])("%s fails the run before the agent starts", async ([, reason, source, says]) => {
    prepareLarge();
    const { ok, failure, error } = await runWith([source()]);
    expect({ ok, failure, error }).toMatchObject({ ok: false, failure: { code: "source_failed", reason } });
    expect(error).toMatch(/^workspace\.sources\[0\] /);
    expect(error).toMatch(says);
  });

  let isPrepared = false;
  function prepareLarge(): void {
    if (isPrepared) return;
    isPrepared = true;
    const files = Object.fromEntries(Array.from({ length: 51 }, (_, at) => [`${at}.txt`, String(at)]));
    forge.repository("acme/many", files);
    forge.repository("acme/large", { "large.txt": "x".repeat(3_000_000) });
    const oid = "1".repeat(64);
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${oid}\nsize 3000000\n`;
    forge.repository("acme/pointers", { "large.bin": pointer, ".gitattributes": "*.bin filter=lfs\n" });
    const small = pointer.replace("3000000", "30");
    for (const form of ["gitea", "unknown", "unlisted"] as const) {
      const path = `acme/pointers-${form}`;
      forge.repository(path, { "large.bin": small, ".gitattributes": "*.bin filter=lfs\n" });
      forge.answerLfs(path, form);
    }
    const gitmodules = '[submodule "x"]\npath = x\nurl = https://thief.test/x\n';
    forge.repository("acme/modules", { ".gitmodules": gitmodules }, (run) =>
      run("update-index", "--add", "--cacheinfo", `160000,${"a".repeat(40)},x`),
    );
    forge.repository("acme/update", {
      ".gitmodules": '[submodule "x"]\npath = x\nurl = ../x\nupdate = !touch x\n',
    });
  }

  it("is refused by its field when it can't be meant", async () => {
    const issues = async (source: object) => {
      const answer = await server.post("/plan", {
        ...demo("say hi"),
        ...closed,
        workspace: { sources: [source] },
      });
      const { failure } = JSON.parse(await answer.text());
      return failure?.issues ?? failure?.gaps;
    };
    const path = "workspace.sources[0].url";
    expect(await issues(git("acme/app", { url: `https://user:${reader}@forge.test/a` }))).toEqual([
      { path, message: expect.stringContaining("put it into `credential`") },
    ]);
    expect(await issues({ type: "git", url: "http://forge.test/a" })).toMatchObject([{ path }]);
    expect(await issues(git("acme/app", { url: "file:///etc" }))).toMatchObject([{ path }]);
    expect(await issues(git("acme/app", { ref: "--upload-pack=x" }))).toMatchObject([
      { path: "workspace.sources[0].ref" },
    ]);
    expect(await issues(git("acme/app", { ref: "main", commit: "a".repeat(40) }))).toMatchObject([
      { path: "workspace.sources[0].commit" },
    ]);
    // A sandbox of its own that can't hide the credential.
    expect(await issues(git("acme/app", { url: `https://127.0.0.1:${forge.port}/acme/app` }))).toMatchObject([
      {
        capability: "secrets.hidden",
        subject: "workspace.sources[0]",
        reason: expect.stringContaining("host name"),
      },
    ]);
  });
});
