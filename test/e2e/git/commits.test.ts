// needs: jail, git
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AmbitClient } from "@ambit/client";
import { beforeAll, describe, expect, it } from "vitest";
import { demo, type Server } from "../support/ambit.js";
import type { Forge } from "../support/forge/forge.js";
import { startForgeServer } from "../support/forge/forge-server.js";
import { servingForms } from "../support/forge/lfs-forms.js";

const reader = `ghp_${"reader00".repeat(5)}`;
const pusher = `ghp_${"pusher00".repeat(5)}`;
const folder = mkdtempSync(join(tmpdir(), "ambit-git-commits-"));
const key = join(folder, "signing-key");
const hasKeygen = existsSync("/usr/bin/ssh-keygen");
let forge: Forge;
let server: Server;

beforeAll(async () => {
  if (hasKeygen) execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "robot", "-f", key]);
  const workspace = {
    allowedRanges: ["127.0.0.0/8", "::1"],
    ...(hasKeygen ? { signingKeyFile: key } : {}),
  };
  const rights = {
    [reader]: { fetch: /^\/(?:scm\/)?acme\// },
    [pusher]: { push: /^\/(?:scm\/)?acme\/(?!locked)/, fetch: /^\/(?:scm\/)?acme\// },
  };
  const started = await startForgeServer(rights, { workspace, isTrustedByServer: true });
  ({ forge, server } = started);
  return async () => {
    await started.close();
    rmSync(folder, { recursive: true, force: true });
  };
}, 120_000);

const closed = { sandboxPermission: { network: "off", filesystem: "workspace" } };
const git = (path: string, more: object = {}) => ({
  type: "git",
  url: forge.url(path),
  credential: { value: reader },
  ...more,
});

/** A run whose agent runs this. */
async function runWith(sources: readonly object[], script: string, more: object = {}) {
  const body = { ...demo(`run ${script}`, "say done"), ...closed, workspace: { sources }, ...more };
  const result = JSON.parse(await (await server.post("/run", body)).text());
  const said = JSON.stringify(result) + server.log();
  for (const token of [reader, pusher]) expect(said).not.toContain(token);
  return result;
}

const author = { name: "Robot of Acme", email: "robot@acme.example" };
const pushing = (more: object = {}) => ({
  patch: true,
  git: { branch: "fix/one", message: "Fix it\n\nBecause.", author, credential: { value: pusher }, ...more },
});

describe("a commit that leaves", { timeout: 180_000 }, () => {
  const script =
    "printf two > app/src/a.txt; rm app/gone; mkdir -p app/new; printf 'a\\0b' > 'app/new/a \"b'; chmod +x app/run; echo x > out";

  function repository(name: string): string {
    return forge.repository(
      `acme/${name}`,
      { "src/a.txt": "one", gone: "", run: "#!/bin/sh\n" },
      (run, made) => {
        symlinkSync("src", join(made, "link"));
        run("add", "-A");
      },
    );
  }
  const run = (name: string, more: object = {}, outputs: object = pushing()) =>
    runWith([git(`acme/${name}`, { into: "app" })], script, { outputs, ...more });

  it("is pushed to a new branch from outside, without a credential or a network inside", async () => {
    const base = repository("out");
    const result = await run("out");
    expect(result, server.log()).toMatchObject({ ok: true, output: "done" });
    expect(JSON.stringify(result) + server.log()).not.toContain(pusher);
    const commit = forge.git("acme/out", "rev-parse", "fix/one");
    expect(result.receipt.outputs.git).toMatchObject({
      url: forge.url("acme/out"),
      branch: "fix/one",
      commit,
      base,
      pushed: true,
    });
    expect(forge.git("acme/out", "log", "-1", "--format=%P %an %ae %cn %B", commit)).toBe(
      `${base} Robot of Acme robot@acme.example Robot of Acme Fix it\n\nBecause.`,
    );
    // The link that never left the repository is still in it; what is outside its folder isn't.
    expect(forge.git("acme/out", "diff", "--name-status", base, commit).split("\n")).toEqual([
      "D\tgone",
      'A\t"new/a \\"b"',
      "M\trun",
      "M\tsrc/a.txt",
    ]);
    expect(forge.git("acme/out", "ls-tree", commit, "run")).toMatch(/^100755/);
    expect(forge.git("acme/out", "show", `${commit}:src/a.txt`)).toBe("two");
  });

  it("moves the branch that the workspace began with, and no other one", async () => {
    const base = repository("moves");
    forge.git("acme/moves", "update-ref", "refs/heads/fix/one", base);
    expect((await run("moves")).receipt.outputs.git).toMatchObject({ branch: "fix/one", base });
    // It isn't the base any more.
    const head = forge.git("acme/moves", "rev-parse", "fix/one");
    const second = await run("moves");
    expect(second).toMatchObject({ ok: false, failure: { code: "outputs_failed", reason: "remote_moved" } });
    expect(forge.git("acme/moves", "rev-parse", "fix/one")).toBe(head);
    // The patch is kept.
    expect(second.receipt.outputs.git).toBeUndefined();
    const patch = await (await fetch(`${server.url}/runs/${second.runId}/patch`)).text();
    expect(patch).toContain("+++ b/app/src/a.txt");
  });

  it("goes on top of the one before in the next run of a session", async () => {
    const base = repository("session");
    const sources = [git("acme/session", { into: "app" })];
    const session = { sessionId: "goes-on", outputs: pushing() };
    const next = (script: string, more: object = {}) => runWith(sources, script, { ...session, ...more });
    const first = await next("echo '*.log' > app/.gitignore; echo 1 > app/a.log; printf two > app/src/a.txt");
    expect(first.receipt.outputs.git, server.log()).toMatchObject({ base });
    const second = await next("echo 2 > app/a.log; printf three > app/src/b.txt; rm app/gone");
    const { commit } = second.receipt.outputs.git;
    expect(second.receipt.outputs.git).toMatchObject({ base: first.receipt.outputs.git.commit });
    expect(forge.git("acme/session", "rev-parse", "fix/one")).toBe(commit);
    expect(forge.git("acme/session", "diff", "--name-status", base, commit).split("\n")).toEqual([
      "A\t.gitignore",
      "D\tgone",
      "M\tsrc/a.txt",
      "A\tsrc/b.txt",
    ]);
    // Nothing changed: the session is where it was, and goes on.
    expect((await next("true")).receipt.outputs.git).toBeUndefined();
    // A change without a commit: the next commit would lack it.
    expect(await next("printf four > app/src/b.txt", { outputs: undefined })).toMatchObject({ ok: true });
    const lost = await next("printf five > app/src/c.txt");
    expect(lost).toMatchObject({ ok: false, failure: { reason: "base_unknown" } });
    expect(forge.git("acme/session", "rev-parse", "fix/one")).toBe(commit);
  });

  it("isn't made without what an earlier run of the session changed, if a run between them failed", async () => {
    repository("failed");
    const sources = [git("acme/failed", { into: "app" })];
    const session = { sessionId: "failed" };
    const edited = await runWith(sources, "printf two > app/src/a.txt", session);
    expect(edited, server.log()).toMatchObject({ ok: true });
    const failed = await runWith(sources, "true", { ...session, ...demo("fail no luck") });
    expect(failed).toMatchObject({ ok: false, failure: { code: "harness_failed" } });
    const pushed = await runWith(sources, "cat app/src/a.txt", { ...session, outputs: pushing() });
    expect(pushed).toMatchObject({ ok: false, failure: { reason: "base_unknown" } });
    expect(JSON.stringify(pushed.events)).toContain("two");
  });

  it("isn't made of what a person has changed in a terminal between two runs", async () => {
    repository("visited");
    const session = { sessionId: "visited", outputs: pushing() };
    const next = (script: string) => runWith([git("acme/visited", { into: "app" })], script, session);
    const first = await next("printf two > app/src/a.txt");
    expect(first, server.log()).toMatchObject({ ok: true });
    const terminal = await new AmbitClient({ url: server.url }).openTerminal("visited");
    const printed: string[] = [];
    const shown = (async () => {
      for await (const bytes of terminal.output()) printed.push(Buffer.from(bytes).toString());
    })();
    await terminal.write("printf by-hand > app/src/b.txt; exit\r");
    await shown;
    const pushed = await next("cat app/src/b.txt");
    expect(pushed, printed.join("")).toMatchObject({ ok: false, failure: { reason: "base_unknown" } });
    expect(JSON.stringify(pushed.events)).toContain("by-hand");
    expect(forge.git("acme/visited", "rev-parse", "fix/one")).toBe(first.receipt.outputs.git.commit);
  });

  it("of a later run is refused by a branch that somebody else moved", async () => {
    const base = repository("taken");
    const session = { sessionId: "taken", outputs: pushing() };
    const next = (script: string) => runWith([git("acme/taken", { into: "app" })], script, session);
    expect(await next("printf two > app/src/a.txt")).toMatchObject({ ok: true });
    forge.git("acme/taken", "update-ref", "refs/heads/fix/one", base);
    const moved = await next("printf four > app/src/b.txt");
    expect(moved).toMatchObject({ ok: false, failure: { reason: "remote_moved" } });
    expect(forge.git("acme/taken", "rev-parse", "fix/one")).toBe(base);
  });

  it.for<[what: string, reason: string, name: string, more: object]>([
    ["to a repository that it may not change", "forbidden", "locked", {}],
    ["with the credential of a reader", "forbidden", "locked", { credential: { value: reader } }],
    ["with a wrong credential", "authentication", "locked", { credential: { value: "wrong-credential" } }],
  ])("%s fails the run and keeps the patch", async ([, reason, name, more]) => {
    repository(name + reason.length + Object.keys(more).length);
    const result = await run(name + reason.length + Object.keys(more).length, {}, pushing(more));
    expect(result).toMatchObject({ ok: false, failure: { code: "outputs_failed", reason } });
    expect(result.receipt.outputs.patch.changes).toHaveLength(5);
    expect(result.error).toContain("patch is kept");
  });

  it.each([".git ", ".gIt.", ".g\u200cit"])(
    "has no folder %j, which a file system may take for .git",
    async (name) => {
      const commit = repository(`named-${encodeURIComponent(name).replaceAll("%", "-")}`);
      const at = `acme/named-${encodeURIComponent(name).replaceAll("%", "-")}`;
      const result = await runWith([git(at)], `mkdir '${name}'; echo x > '${name}/config'`, {
        outputs: pushing(),
      });
      // It is left out like `.git` itself, so that nothing has changed.
      expect(result, server.log()).toMatchObject({
        ok: true,
        receipt: { outputs: { patch: { changes: [] } } },
      });
      expect(result.receipt.outputs.git).toBeUndefined();
      expect(forge.git(at, "for-each-ref", "--format=%(objectname)")).toBe(commit);
    },
  );

  it("is refused by its field when it can't be meant", async () => {
    const issues = async (outputs: object, sources: readonly object[] = [git("acme/app")]) => {
      const body = { ...demo("say hi"), ...closed, workspace: { sources }, outputs };
      const { failure } = JSON.parse(await (await server.post("/plan", body)).text());
      return failure?.issues;
    };
    expect(await issues({ ...pushing(), patch: false, include: ["x"] })).toMatchObject([
      { path: "outputs.git" },
    ]);
    expect(await issues(pushing({ branch: "refs/heads/main" }))).toMatchObject([
      { path: "outputs.git.branch" },
    ]);
    expect(await issues(pushing({ branch: "-x" }))).toMatchObject([{ path: "outputs.git.branch" }]);
    expect(await issues(pushing({ author: { name: "a\nb", email: "a" } }))).toMatchObject([
      { path: "outputs.git.author.name" },
    ]);
    expect(await issues(pushing(), [git("acme/app"), git("acme/part")])).toMatchObject([
      { path: "outputs.git" },
    ]);
  });
});

/** The bundle of a run, fetched into a clone as a platform does. */
async function fetched(runId: string, path: string) {
  const bundle = join(folder, `${runId}.bundle`);
  const response = await fetch(`${server.url}/runs/${runId}/bundle`);
  const bytes = Buffer.from(await response.arrayBuffer());
  writeFileSync(bundle, bytes);
  const clone = join(folder, `clone-${runId}`);
  forge.clone(path, clone);
  const run = (...args: readonly string[]) => execFileSync("git", args, { cwd: clone }).toString().trim();
  run("fetch", "-q", bundle, "refs/heads/fix/one:refs/heads/fetched");
  return { run, sha256: createHash("sha256").update(bytes).digest("hex"), size: bytes.length };
}

describe("a commit that is kept", { timeout: 180_000 }, () => {
  it("is signed outside, and fetched from a bundle; nothing is pushed, and nothing needs a right to", async (context) => {
    if (!hasKeygen) context.skip("host: no ssh-keygen: apt-get install openssh-client");
    const base = forge.repository("acme/kept", { "a.txt": "one" });
    const result = await runWith(
      [git("acme/kept")],
      "printf two > a.txt; grep -r OPENSSH / --include=signing-key -s",
      {
        outputs: pushing({ push: "none", credential: undefined }),
      },
    );
    expect(result, server.log()).toMatchObject({ ok: true });
    const { commit, bundle, ...facts } = result.receipt.outputs.git;
    expect(facts).toMatchObject({ branch: "fix/one", base, pushed: false, signed: true });
    expect(forge.git("acme/kept", "for-each-ref", "--format=%(objectname)")).toBe(base);
    const { run, ...kept } = await fetched(result.runId, "acme/kept");
    expect(kept).toEqual(bundle);
    expect(run("rev-parse", "fetched")).toBe(commit);
    expect(run("show", "fetched:a.txt")).toBe("two");
    // Real git verifies it with the public key, and refuses it for somebody else's.
    const signers = join(folder, "allowed-signers");
    const publicKey = readFileSync(`${key}.pub`, "utf8");
    const verify = () =>
      run("-c", "gpg.format=ssh", "-c", `gpg.ssh.allowedSignersFile=${signers}`, "verify-commit", "fetched");
    writeFileSync(signers, `robot@acme.example ${publicKey}`);
    expect(verify).not.toThrow();
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(folder, "other")]);
    writeFileSync(signers, `robot@acme.example ${readFileSync(join(folder, "other.pub"), "utf8")}`);
    expect(verify).toThrow();
    expect(JSON.stringify(result) + server.log()).not.toContain(readFileSync(key, "utf8").split("\n")[2]);
  });

  it("keeps submodules, and isn't made where a file of one changed", async () => {
    const part = forge.repository("acme/part", { "part.txt": "of the submodule", "more.txt": "more" });
    const modules = `[submodule "part"]\npath = vendor/part\nurl = ../part\n`;
    forge.repository("acme/whole", { ".gitmodules": modules, "a.txt": "one" }, (git) =>
      git("update-index", "--add", "--cacheinfo", `160000,${part},vendor/part`),
    );
    const credential = { value: reader, paths: ["/acme/part/*"] };
    const sources = [git("acme/whole", { submodules: true, credential })];
    const plain = await runWith(sources, "printf two > a.txt", { outputs: pushing() });
    expect(plain, server.log()).toMatchObject({ ok: true });
    expect(forge.git("acme/whole", "ls-tree", "fix/one", "vendor/")).toBe(
      `160000 commit ${part}\tvendor/part`,
    );

    const outputs = pushing({ branch: "fix/two" });
    const changed = await runWith(sources, "printf two > vendor/part/part.txt", { outputs });
    expect(changed).toMatchObject({ ok: false, failure: { code: "outputs_failed", reason: "push_failed" } });
    expect(changed.error).toContain("'vendor/part' is a submodule");
    expect(() => forge.git("acme/whole", "rev-parse", "fix/two")).toThrow();
    expect((await fetch(`${server.url}/runs/${changed.runId}/bundle`)).status).toBe(404);
    expect(changed.receipt.outputs.patch.changes).toMatchObject([{ path: "vendor/part/part.txt" }]);
    const deleted = await runWith(sources, "printf two > a.txt; rm vendor/part/more.txt", { outputs });
    expect(deleted).toMatchObject({ ok: false, failure: { code: "outputs_failed", reason: "push_failed" } });
    expect(deleted.error).toContain("'vendor/part/more.txt' is a submodule's, and the run deleted it");
  });

  it("has pointers in place of what its attributes give to git LFS, which gets the contents", async (context) => {
    if (!existsSync("/usr/bin/git-lfs")) context.skip("host: no git-lfs: apt-get install git-lfs");
    forge.repository("acme/lfs", {
      ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
      "old.bin": forge.lfs("the old content"),
      "same.bin": forge.lfs("the same content"),
    });
    // An agent without a network can't have its contents sent to another repository of the host.
    const thief = `${forge.url("public/thief").replace("https://", "https://thief:token@")}.git/info/lfs`;
    const script = [
      "printf 'the new content' > old.bin; echo '*.dat filter=lfs' >> .gitattributes; printf more > a.dat",
      `printf plain > a.txt; printf '' > empty.bin; printf '[lfs]\\npushurl = ${thief}\\n' > .lfsconfig`,
    ].join("; ");
    const result = await runWith([git("acme/lfs", { lfs: true })], script, { outputs: pushing() });
    expect(result, server.log()).toMatchObject({ ok: true });
    expect(forge.git("acme/lfs", "show", "fix/one:.lfsconfig")).toContain("public/thief");
    const batches = forge.served.filter(({ url }) => url.endsWith("/info/lfs/objects/batch"));
    expect(new Set(batches.map(({ url }) => url))).toEqual(new Set(["/acme/lfs.git/info/lfs/objects/batch"]));
    const show = (path: string) => forge.git("acme/lfs", "show", `fix/one:${path}`);
    for (const [path, content] of Object.entries({ "old.bin": "the new content", "a.dat": "more" })) {
      const oid = createHash("sha256").update(content).digest("hex");
      expect(show(path)).toContain(`oid sha256:${oid}\nsize ${content.length}`);
      expect(forge.lfsContent(oid)).toBe(content);
    }
    expect(show("a.txt")).toBe("plain");
    expect(show("empty.bin")).toBe("");
    expect(show("same.bin")).toContain("version https://git-lfs");
  });

  it.for(servingForms)("uploads to git LFS at a host that answers as %s does", async (form, context) => {
    if (!existsSync("/usr/bin/git-lfs")) context.skip("host: no git-lfs: apt-get install git-lfs");
    const path = form === "azure" ? "acme/project/_git/app" : `acme/lfs-${form}`;
    forge.repository(path, { ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n" });
    forge.answerLfs(path, form);
    const content = `made for ${form}`;
    const result = await runWith([git(path)], `printf '${content}' > new.bin`, { outputs: pushing() });
    expect(result, server.log()).toMatchObject({ ok: true });
    const oid = createHash("sha256").update(content).digest("hex");
    expect(forge.git(path, "show", "fix/one:new.bin")).toContain(`oid sha256:${oid}`);
    expect(forge.lfsContent(oid)).toBe(content);
  });

  it("says why git LFS couldn't upload, and pushes nothing", async (context) => {
    if (!existsSync("/usr/bin/git-lfs")) context.skip("host: no git-lfs: apt-get install git-lfs");
    const path = "acme/lfs-unknown";
    forge.repository(path, { ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n" });
    forge.answerLfs(path, "unknown");
    const result = await runWith([git(path)], "printf new > new.bin", { outputs: pushing() });
    expect(result).toMatchObject({ ok: false, failure: { code: "outputs_failed", reason: "forbidden" } });
    expect(result.error).toContain("Ambit's boundary refused this request");
    expect(() => forge.git(path, "rev-parse", "fix/one")).toThrow();
  });
});

describe("a pull request", { timeout: 180_000 }, () => {
  const wish = { title: "Fix it", body: "Because.", base: "main", draft: true, labels: ["robot", "fix"] };
  /** The path of a repository there, the API's, and the title of a draft. Bitbucket has no labels. */
  const hosts = {
    github: { path: "acme/github", api: "api/v3", title: "Fix it" },
    gitlab: { path: "acme/gitlab", api: "api/v4", title: "Draft: Fix it" },
    gitea: { path: "acme/gitea", api: "api/v1", title: "WIP: Fix it" },
    bitbucket: { path: "acme/bitbucket", api: "api/2.0", title: "Fix it", labels: [] },
    "bitbucket-data-center": { path: "scm/acme/app", api: "rest/api/1.0", title: "Fix it", labels: [] },
    azure: { path: "acme/project/_git/pulls", api: "acme", title: "Fix it" },
  } as const;
  const asked = (host: keyof typeof hosts, more: object = {}) => {
    const { path: _path, api, title: _title, ...differing } = hosts[host];
    return { ...wish, host, apiUrl: `https://localhost:${forge.port}/${api}`, ...differing, ...more };
  };

  it.each(["github", "gitlab", "gitea", "bitbucket", "bitbucket-data-center", "azure"] as const)(
    "is opened at a host of %s, and taken if it is open",
    async (host) => {
      const { path, title, api: _api, ...differing } = hosts[host];
      forge.repository(path, { "a.txt": "one" });
      const outputs = pushing({ pullRequest: asked(host) });
      const result = await runWith([git(path)], "printf two > a.txt", { outputs });
      expect(result, server.log()).toMatchObject({ ok: true });
      const { pullRequest } = result.receipt.outputs.git;
      const [opened] = forge.pulls.filter(({ repository }) => repository === path);
      expect(opened).toMatchObject({ ...wish, ...differing, title, head: "fix/one" });
      expect(pullRequest).toEqual({
        url: expect.stringMatching(/^https:\/\/forge\.test\/.*acme\/.*\d$/),
        number: opened?.number,
        opened: true,
      });
      const data = { ...pullRequest, branch: "fix/one" };
      expect(result.events).toContainEqual(
        expect.objectContaining({ type: "data", name: "pull_request", data }),
      );
      // The branch as it was before: a second run pushes it again.
      forge.git(path, "update-ref", "-d", "refs/heads/fix/one");
      const again = await runWith([git(path)], "printf three > a.txt", { outputs });
      expect(again.receipt.outputs.git.pullRequest).toEqual({ ...pullRequest, opened: false });
      expect(forge.pulls.filter(({ repository }) => repository === path)).toHaveLength(1);
    },
  );

  it.for<[what: string, more: object, said: RegExp]>([
    ["whose branch isn't there", { base: "nowhere" }, /HTTP 422/],
    ["whose credential may not open it", { credential: { value: "another-token" } }, /HTTP 401/],
    ["at an address without an API", { apiUrl: "none" }, /without JSON|HTTP 4/],
    ["at a host that doesn't answer", { apiUrl: "https://localhost:1" }, /ECONNREFUSED/],
    ["at an address that the operator refuses", { apiUrl: "https://169.254.169.254" }, /169\.254/],
  ])("%s fails the run, and its branch is pushed", async ([what, more, said]) => {
    const path = `acme/pull-${what.length}`;
    forge.repository(path, { "a.txt": "one" });
    const apiUrl = "apiUrl" in more && more.apiUrl === "none" ? { apiUrl: forge.url("public/none") } : {};
    const local = {
      ...more,
      ...(apiUrl.apiUrl === undefined ? {} : { apiUrl: apiUrl.apiUrl.replace("forge.test", "localhost") }),
    };
    const outputs = pushing({ pullRequest: asked("github", local) });
    const result = await runWith([git(path)], "printf two > a.txt", { outputs });
    expect(result).toMatchObject({
      ok: false,
      failure: { code: "outputs_failed", reason: "pull_request_failed" },
    });
    expect(result.error).toMatch(said);
    expect(result.receipt.outputs.git).toMatchObject({ pushed: true });
    expect(forge.git(path, "rev-parse", "fix/one")).toBe(result.receipt.outputs.git.commit);
  });

  it("is refused by its field when it can't be meant", async () => {
    const issues = async (more: object) => {
      const outputs = pushing(more);
      const body = { ...demo("say hi"), ...closed, workspace: { sources: [git("acme/kept")] }, outputs };
      const { failure } = JSON.parse(await (await server.post("/plan", body)).text());
      return failure?.issues;
    };
    expect(await issues({ pullRequest: wish })).toMatchObject([{ path: "outputs.git.pullRequest.host" }]);
    expect(await issues({ pullRequest: asked("azure") })).toMatchObject([
      { path: "outputs.git.pullRequest.host" },
    ]);
    expect(await issues({ pullRequest: { ...asked("bitbucket"), labels: ["robot"] } })).toMatchObject([
      { path: "outputs.git.pullRequest.labels" },
    ]);
    expect(await issues({ push: "none", pullRequest: asked("github") })).toMatchObject([
      { path: "outputs.git.pullRequest" },
    ]);
    expect(await issues({ pullRequest: asked("github", { apiUrl: "http://localhost" }) })).toMatchObject([
      { path: "outputs.git.pullRequest.apiUrl" },
    ]);
  });
});
