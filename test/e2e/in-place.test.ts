// needs: jail, git
import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { startModelServer } from "@ambit/model-server";
import { beforeEach, describe, expect, it } from "vitest";
import { ambit, emptyFolder } from "./support/ambit.js";

/** As root, a session has a user of its own, who may not write the folder: these runs have an ordinary user. */
const isRoot = process.getuid?.() === 0;
const user = isRoot ? { uid: 12_345, gid: 12_345 } : undefined;

let top: string;
let folder: string;
let env: Record<string, string>;
beforeEach(async () => {
  top = await emptyFolder();
  folder = join(top, "project");
  const home = join(top, "home");
  for (const path of [folder, home, join(folder, "node_modules"), join(folder, "node_modules/check")])
    mkdirSync(path);
  env = { HOME: home, XDG_STATE_HOME: join(home, "state"), XDG_CACHE_HOME: join(home, "cache") };
  write(".gitignore", "node_modules\n");
  write("package.json", '{"private":true,"scripts":{"test":"node test.js"}}');
  write(
    "node_modules/check/index.js",
    "module.exports = (is) => console.log(is === 3 ? 'all is well' : 'wrong');",
  );
  write("add.js", "module.exports = (a, b) => a - b;\n");
  write("test.js", 'require("check")(require("./add.js")(1, 2));\n');
  write("../secret", "of the user");
  if (user !== undefined)
    for (const path of ["", ...readdirSync(top, { recursive: true, encoding: "utf8" })])
      chownSync(join(top, path), user.uid, user.gid);
  git("init", "-q");
  git("add", ".");
  git("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "commit", "-qm", "First");
});

const write = (path: string, text: string) => writeFileSync(join(folder, path), text);
/** As the folder's user, with nothing of the tester's own settings. */
const git = (...args: readonly string[]) =>
  execFileSync("git", args, {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: dirname(folder), GIT_CONFIG_NOSYSTEM: "1" },
    encoding: "utf8",
    ...user,
  });

const line = [
  "run",
  "--folder",
  ".",
  "--in-place",
  "--network",
  "off",
  "--permissions",
  "allow",
  "--timeline",
];
const inFolder = () => ({ cwd: folder, env, user });

describe("ambit run --in-place", () => {
  it("lets a real agent mend a failing test in the folder itself, and goes back", {
    timeout: 120_000,
  }, async () => {
    await using model = await startModelServer({ expectedKey: "key-of-the-person" });
    const test = () => spawnSync("npm", ["test"], { cwd: folder, encoding: "utf8" }).stdout;
    expect(test()).toContain("wrong");
    const shell =
      "npm test; git status --short; sed -i s/-/+/ add.js; echo broken > node_modules/check/x; npm test";
    const keys = { GEMINI_API_KEY: "key-of-the-person", GOOGLE_GEMINI_BASE_URL: model.url };
    const { code, stdout, stderr } = await ambit(
      [...line, "--agent", "gemini", "--secrets", "hidden", `[[shell ${shell}]] [[say Fixed.]]`],
      { ...inFolder(), env: { ...env, ...keys } },
    );
    expect(code, stderr + stdout).toBe(0);
    expect(stdout).toMatch(/^M 1\n {2}1 {2}M add\.js\n/m);
    expect(stdout).toContain("-module.exports = (a, b) => a - b;\n+module.exports = (a, b) => a + b;\n");
    expect(stdout.endsWith(`to go back: ambit undo ${folder}\n`)).toBe(true);
    expect(test()).toContain("all is well");

    // What git ignores too.
    const undone = await ambit(["undo"], inFolder());
    expect(undone).toMatchObject({ code: 0, stdout: `brought 2 paths of ${folder} back\n` });
    expect(test()).toContain("wrong");
    expect(existsSync(join(folder, "node_modules/check/x"))).toBe(false);
    expect(git("status", "--short")).toBe("");
    expect(await ambit(["undo"], inFolder())).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("undone"),
    });
  });

  it("keeps what the agent writes for git from running on the host, and the agent from everything else", {
    timeout: 120_000,
  }, async () => {
    const ran = join(top, "home", "ran");
    const attacks = [
      `mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch ${ran}' > .git/hooks/post-index-change; chmod +x .git/hooks/*`,
      `git config core.fsmonitor "touch ${ran}; false"`,
      `printf '[core]\\n\\tfsmonitor = "touch ${ran}; false"\\n' >> .git/config`,
      "mkdir evil; cp .git/HEAD evil; echo ../evil > .git/commondir",
      "mv .git away; rm -rf .git; git init -q; echo made > .git/made",
    ];
    const look = () => {
      git("status");
      const hasRun = existsSync(ran);
      if (hasRun) execFileSync("rm", [ran]);
      return hasRun;
    };
    // Control: a program that isn't confined does it.
    const config = readFileSync(join(folder, ".git/config"));
    execFileSync("/bin/sh", ["-c", attacks[1] ?? ""], {
      cwd: folder,
      ...user,
      env: { PATH: process.env.PATH },
    });
    expect(look()).toBe(true);
    writeFileSync(join(folder, ".git/config"), config);

    const outside = `cat ../secret ${join(top, "secret")}; echo x > ../new; echo x > ${join(top, "new")}`;
    const nested = `git init -q sub; git -C sub config core.fsmonitor "touch ${ran}; false"`;
    const script = [...attacks, outside, nested].map((command) => `run ${command}`).join("\n");
    const { code, stdout, stderr } = await ambit([...line, "--agent", "demo", script], inFolder());
    expect(code, stderr + stdout).toBe(0);
    expect(stdout).toContain("Read-only file system");
    expect(readFileSync(join(folder, ".git/config"))).toEqual(config);
    expect(
      ["hooks/post-index-change", "commondir", "made"].map((path) => existsSync(join(folder, ".git", path))),
    ).toEqual([false, false, false]);
    expect(stdout).toMatch(/^disarmed: sub\/\.git\.ambit-disarmed-\w+: /m);
    expect(look()).toBe(false);
    expect(spawnSync("git", ["status"], { cwd: join(folder, "sub"), ...user, env: {} }).status).toBe(0);
    expect(existsSync(ran)).toBe(false);
    // Ambit's own next command of git.
    const copied = ["run", "--folder", ".", "--agent", "demo", "--no-apply", "say hi"];
    expect((await ambit(copied, inFolder())).code).toBe(0);
    expect(existsSync(ran)).toBe(false);
    expect(stdout).not.toContain("of the user");
    expect(existsSync(join(top, "new"))).toBe(false);
  });

  it("makes no repository of a folder that is none", { timeout: 120_000 }, async () => {
    execFileSync("rm", ["-rf", join(folder, ".git")]);
    const { code, stdout, stderr } = await ambit(
      [...line, "--agent", "demo", "run git init; echo x > .git/config; ls -a"],
      inFolder(),
    );
    expect(code, stderr + stdout).toBe(0);
    expect(existsSync(join(folder, ".git"))).toBe(false);
  });

  it("refuses what it can't do", { timeout: 120_000 }, async () => {
    const refused = async (...more: readonly string[]) => {
      const { code, stdout, stderr } = await ambit(
        [...line, "--agent", "demo", ...more, "say hi"],
        inFolder(),
      );
      expect(code, stderr + stdout).not.toBe(0);
      return stderr + stdout;
    };
    expect(await refused("--setup", "npm ci")).toContain("--setup: doesn't go together with --in-place");
    expect(await refused("--filesystem", "on")).toContain(
      "--filesystem: doesn't go together with --in-place",
    );
    expect((await ambit(["run", "--agent", "demo", "--in-place", "say hi"])).stderr).toContain(
      "needs --folder",
    );
    const state = { ...inFolder(), env: { ...env, XDG_STATE_HOME: join(folder, "state") } };
    expect((await ambit([...line, "--agent", "demo", "say hi"], state)).stdout).toContain(
      "holds Ambit's own data",
    );
  });

  it("is refused as root", async (context) => {
    if (!isRoot) context.skip("host: only root can try this");
    const { code, stderr } = await ambit([...line, "--agent", "demo", "say hi"], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain("as root, each session has a user of its own");
  });
});
