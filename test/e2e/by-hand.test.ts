// needs: jail, git

import { execFileSync, spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { startModelServer } from "@ambit/model-server";
import { describe, expect, it } from "vitest";
import { ambit, emptyFolder, interrupt, startAmbit, startTerminal } from "./support/ambit.js";

const script = (...lines: readonly string[]) => lines.join("\n");
const allowed = ["--permissions", "allow"];

/** A git repository with a file of each kind that matters. */
async function project(): Promise<string> {
  const folder = await emptyFolder();
  const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: folder });
  git("init", "-q");
  writeFileSync(join(folder, "app.txt"), "one\ntwo\n");
  writeFileSync(join(folder, "logo.bin"), Buffer.from([0, 255, 1, 2]));
  writeFileSync(join(folder, "run.sh"), "#!/bin/sh\n");
  chmodSync(join(folder, "run.sh"), 0o750);
  writeFileSync(join(folder, ".gitignore"), "secret.env\n");
  git("add", ".");
  writeFileSync(join(folder, "secret.env"), "KEY=ignored");
  writeFileSync(join(folder, "untracked.txt"), "new");
  symlinkSync("/etc/passwd", join(folder, "link"));
  return folder;
}

/** A project whose one test fails, with a package that it needs for it. */
async function failingProject(): Promise<string> {
  const folder = await emptyFolder();
  const files = {
    ".gitignore": "node_modules\n.env\n",
    ".env": "KEY=ignored",
    "package.json": '{"private":true,"scripts":{"test":"check"}}',
    "add.js": "module.exports = (a, b) => a - b;\n",
    "test.js": 'require("check")(require("./add.js")(1, 2), 3);\n',
    "node_modules/check/index.js":
      "module.exports = (is, wanted) => { console.log(is === wanted ? 'all is well' : 'expected ' + wanted); process.exitCode = is === wanted ? 0 : 1; };",
    "node_modules/check/cli.js": "#!/usr/bin/env node\nrequire(process.cwd() + '/test.js');\n",
  };
  mkdirSync(join(folder, "node_modules/check"), { recursive: true });
  mkdirSync(join(folder, "node_modules/.bin"));
  for (const [path, content] of Object.entries(files)) writeFileSync(join(folder, path), content);
  chmodSync(join(folder, "node_modules/check/cli.js"), 0o755);
  symlinkSync("../check/cli.js", join(folder, "node_modules/.bin/check"));
  const git = (...args: readonly string[]) => execFileSync("git", args, { cwd: folder });
  git("init", "-q");
  git("config", "user.name", "Ada");
  git("config", "user.email", "ada@example.com");
  git("add", ".");
  git("commit", "-qm", "First");
  return folder;
}

describe("ambit run with a prompt", () => {
  it("gives the agent a copy of the folder, shows the patch, and applies it when asked", async () => {
    const folder = await project();
    const agent = script(
      "run ls -A | tr '\\n' ' '",
      "write app.txt one\\n2\\n",
      "write docs/new.md new\\n",
      "run rm untracked.txt; printf 'x' >> logo.bin; echo '#changed' >> run.sh",
    );
    const line = ["run", "--agent", "demo", "--folder", folder, "--network", "off", ...allowed];
    const shown = await ambit([
      ...line,
      "--timeline",
      "--no-apply",
      "--patch",
      join(folder, "../p.patch"),
      agent,
    ]);
    expect(shown.code, shown.stderr + shown.stdout).toBe(0);
    expect(shown.stdout).toContain(".git .gitignore app.txt link logo.bin run.sh untracked.txt");
    expect(shown.stdout).not.toContain("secret.env");
    expect(shown.stdout).toMatch(/^A 1 M 3 D 1\n {2}1 {2}M app\.txt\n {2}2 {2}A docs\/new\.md\n/m);
    expect(shown.stdout).toContain("-two\n+2\n");
    expect(shown.stderr).toContain(
      "ambit: left out: secret.env (ignored by git; --include takes them along)\n",
    );
    expect(readFileSync(join(folder, "app.txt"), "utf8")).toBe("one\ntwo\n");
    expect(readFileSync(join(folder, "../p.patch"), "utf8")).toContain(
      "diff --git a/docs/new.md b/docs/new.md",
    );
    rmSync(join(folder, "../p.patch"));

    const applied = await ambit([...line, "--timeline", "--apply", agent]);
    expect(applied.code, applied.stderr + applied.stdout).toBe(0);
    expect(applied.stdout).toContain("applied 5 changes");
    expect(readFileSync(join(folder, "app.txt"), "utf8")).toBe("one\n2\n");
    expect(readFileSync(join(folder, "docs/new.md"), "utf8")).toBe("new\n");
    expect(readFileSync(join(folder, "logo.bin"))).toEqual(Buffer.from([0, 255, 1, 2, 120]));
    expect(existsSync(join(folder, "untracked.txt"))).toBe(false);
    expect(statSync(join(folder, "run.sh")).mode & 0o777).toBe(0o750);
  });

  it.each(["--stream", "--json"])("leaves stdout to the program that reads it: %s", async (format) => {
    const line = ["run", "--agent", "demo", "--folder", await project(), ...allowed, format];
    const { stdout, stderr } = await ambit([...line, "--apply", "write app.txt changed"]);
    const lines = stdout.trim().split("\n");
    expect(() => lines.map((text) => JSON.parse(text))).not.toThrow();
    expect(stderr).toContain("applied 1 change");
  });

  it("names a file that changed meanwhile, and applies nothing", async () => {
    const folder = await project();
    const agent = script("write app.txt agent\\n", "write other.txt agent\\n", "say at work", "sleep 3000");
    const child = startAmbit([
      "run",
      "--agent",
      "demo",
      "--folder",
      folder,
      ...allowed,
      "--timeline",
      "--apply",
      agent,
    ]);
    let printed = "";
    child.stdout?.on("data", (bytes: Buffer) => {
      // The user works on the same file while the agent does.
      if (!printed.includes("at work") && String(bytes).includes("at work"))
        writeFileSync(join(folder, "app.txt"), "user\n");
      printed += String(bytes);
    });
    const code = await new Promise((resolve) => child.once("close", resolve));
    expect(code).toBe(1);
    expect(printed).toContain("app.txt: it was changed meanwhile");
    expect(readFileSync(join(folder, "app.txt"), "utf8")).toBe("user\n");
    expect(existsSync(join(folder, "other.txt"))).toBe(false);
    const [, patch = ""] = /the patch is in (\S+)/.exec(printed) ?? [];
    expect(readFileSync(patch, "utf8")).toContain("+agent");
    rmSync(join(patch, ".."), { recursive: true });
  });

  it("asks at the terminal: once, always, no; then whether to apply", async () => {
    const folder = await project();
    const agent = script("write a.txt 1", "write b.txt 2", "run touch c.txt", "run touch d.txt");
    const line = ["run", "--agent", "demo", "--folder", folder, "--permissions", "ask", agent];
    const child = startTerminal(line);
    const asked = await child.answer(/May write be called\?[\s\S]*a\.txt[\s\S]*\[n\]o/, "a");
    // Once, and not as JSON between the lines.
    expect(asked).toMatch(/May write be called\?.*\r\n {2}path: \/workspace\/a\.txt\r\n {2}text: "1"\r\n/);
    expect(asked).not.toContain("approval of");
    await child.answer(/May run be called\?[\s\S]*c\.txt[\s\S]*\[n\]o/, "o");
    await child.answer(/May run be called\?[\s\S]*d\.txt[\s\S]*\[n\]o/, "n");
    await child.answer(/A 3[\s\S]*Apply 3 changes[\s\S]*\[d\]iff/, "y");
    expect(await child.exit, child.printed()).toBe(0);
    expect(["a.txt", "b.txt", "c.txt", "d.txt"].map((name) => existsSync(join(folder, name)))).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });

  it("applies nothing when it is interrupted at the question", async () => {
    const folder = await project();
    const child = startTerminal(["run", "--agent", "demo", "--folder", folder, ...allowed, "write a.txt 1"]);
    await child.answer(/Apply 1 change [\s\S]*\[d\]iff/, interrupt);
    expect(await child.exit, child.printed()).toBe(130);
    expect(child.printed()).toContain("nothing was applied");
    expect(existsSync(join(folder, "a.txt"))).toBe(false);
  });

  it("shows the work of an agent that is interrupted, and asks", async () => {
    const folder = await project();
    const agent = script("write a.txt 1", "run sleep 60");
    const child = startTerminal(["run", "--agent", "demo", "--folder", folder, ...allowed, "--apply", agent]);
    await child.answer(/calls[^\n]*sleep 60/, interrupt);
    // Even with --apply: it isn't finished.
    await child.answer(/\+1[\s\S]*Apply 1 change [\s\S]*\[d\]iff/, "y");
    expect(await child.exit, child.printed()).toBe(130);
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("1");
  });

  it("pages a long patch, and applies some of the changes", async () => {
    const folder = await project();
    const pager = join(await emptyFolder(), "paged");
    const agent = script("run seq 1 500 > long.txt; mkdir d; touch d/a d/b; echo three >> app.txt");
    const line = ["run", "--agent", "demo", "--folder", folder, ...allowed, agent];
    const child = startTerminal(line, { PAGER: `cat > ${pager}; echo paged` });
    await child.answer(/A 3[\s\S]*M 1[\s\S]*paged[\s\S]*\[s\]ome/, "s");
    await child.answer(/Which\?/, "1 nothing");
    await child.answer(/nothing names none of them[\s\S]*Which\?/, "1 d");
    expect(await child.exit, child.printed()).toBe(0);
    expect(child.printed()).toContain("1 change not applied");
    expect(readFileSync(pager, "utf8")).toContain("+500");
    expect(["long.txt", "d/a", "d/b"].map((path) => existsSync(join(folder, path)))).toEqual([
      false,
      true,
      true,
    ]);
    expect(readFileSync(join(folder, "app.txt"), "utf8")).toBe("one\ntwo\nthree\n");
  });

  it("names what it would have asked where there is no terminal", async () => {
    const folder = await project();
    const line = ["run", "--agent", "demo", "--folder", folder, "--apply", "write a.txt 1"];
    const paused = await ambit(line);
    expect(paused.code).toBe(5);
    expect(paused.stderr).toContain("needs permission to call write");
    expect(paused.stderr).toContain("--permissions allow");
    expect(existsSync(join(folder, "a.txt"))).toBe(false);
    // The control: the fix that it names.
    expect((await ambit([...line, ...allowed])).code).toBe(0);
    expect(existsSync(join(folder, "a.txt"))).toBe(true);
  });

  it("asks at the terminal what a request's client tool gives", async () => {
    const file = join(await emptyFolder(), "request.json");
    const request = {
      harness: "demo",
      messages: [{ role: "user", content: 'call look_out {"window":"left"}' }],
      customTools: [{ kind: "client", name: "look_out" }],
      permissions: { default: "allow" },
      interactions: { waitMs: 60_000 },
    };
    writeFileSync(file, JSON.stringify(request));
    const child = startTerminal(["run", file]);
    await child.answer(/look_out is yours to execute[\s\S]*window: left[\s\S]*declines:/, "rain and wind");
    expect(await child.exit, child.printed()).toBe(0);
    expect(child.printed()).toContain("rain and wind");
  });

  it("continues the conversation of the folder's last run", async () => {
    const folder = await project();
    const line = ["run", "--agent", "demo", "--folder", folder, ...allowed, "--no-apply", "--timeline"];
    const early = await ambit([...line, "--resume", "say hi"]);
    expect(early).toMatchObject({ code: 2, stderr: expect.stringContaining("leave --resume out") });
    expect((await ambit([...line, "say It is 42."])).code).toBe(0);
    const file = join(await emptyFolder(), "request.json");
    const resumed = await ambit([...line, "--resume", "--save", file, "say It is even."]);
    expect(resumed.code, resumed.stderr).toBe(0);
    expect(JSON.parse(readFileSync(file, "utf8")).messages).toEqual([
      { role: "user", content: "say It is 42." },
      { role: "assistant", content: "It is 42." },
      { role: "user", content: "say It is even." },
    ]);
    for (const option of [["--resume"], ["--apply"], ["--patch", "run.patch"]]) {
      const nowhere = await ambit(["run", "--agent", "demo", ...option, "say hi"]);
      expect(nowhere).toMatchObject({ code: 2, stderr: expect.stringContaining("needs --folder") });
    }
  });

  it("gives the agent a skill's folder", async () => {
    const skill = await emptyFolder();
    writeFileSync(join(skill, "SKILL.md"), "---\nname: tidy\ndescription: Tidies up.\n---\nTidy it.\n");
    const line = ["run", "--agent", "demo", "--skill", skill, ...allowed, "--timeline"];
    const { code, stdout, stderr } = await ambit([...line, "run find . -name SKILL.md | xargs cat"]);
    expect(code, stderr + stdout).toBe(0);
    expect(stdout).toContain("Tidy it.");
  });

  it("saves the request without credentials, which a server can run", async () => {
    const folder = await project();
    const file = join(await emptyFolder(), "request.json");
    const { code } = await ambit(
      [
        "run",
        "--agent",
        "demo",
        "--folder",
        folder,
        "--network",
        "example.com:443,10.0.0.0/8",
        "--memory",
        "512",
        "--save",
        file,
        "say hi",
      ],
      { env: { GEMINI_API_KEY: "key-that-must-not-be-saved" } },
    );
    expect(code).toBe(0);
    const saved = readFileSync(file, "utf8");
    expect(saved).not.toContain("must-not-be-saved");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(JSON.parse(saved)).toMatchObject({
      harness: "demo",
      sandboxPermission: {
        network: { allowlist: ["example.com:443", "10.0.0.0/8"] },
        filesystem: "workspace",
        resources: { memoryMb: 512 },
      },
      workspace: { sources: [{ type: "files" }] },
    });
    expect((await ambit(["run", file])).code).toBe(0);
  });

  it("lets a real agent mend a project's failing test, with its packages and its repository, and its key outside", {
    timeout: 120_000,
  }, async () => {
    await using model = await startModelServer({ expectedKey: "key-of-the-person" });
    const folder = await failingProject();
    const test = () => spawnSync("npm", ["test"], { cwd: folder, encoding: "utf8" });
    // Control: it fails.
    expect(test().stdout).toContain("expected 3");
    const shell = "npm test; git log --oneline; sed -i s/-/+/ add.js; npm test; git commit -qam Mended; env";
    const { code, stdout, stderr } = await ambit(
      [
        ...["run", "--agent", "gemini", "--folder", folder, "--network", "off", "--secrets", "hidden"],
        ...["--include", "node_modules", ...allowed, "--timeline", "--apply"],
        `[[shell ${shell}]] [[say Fixed.]]`,
      ],
      { env: { GEMINI_API_KEY: "key-of-the-person", GOOGLE_GEMINI_BASE_URL: model.url } },
    );
    expect(code, stderr + stdout).toBe(0);
    expect(stdout).toMatch(/^M 1\n {2}1 {2}M add\.js\n/m);
    expect(stdout).toContain("applied 1 change");
    expect(stdout).not.toContain("key-of-the-person");
    expect(stderr).toContain("left out: .env (ignored by git");
    expect(test().stdout).toContain("all is well");
    // What the agent committed is the copy's.
    expect(execFileSync("git", ["log", "--oneline"], { cwd: folder, encoding: "utf8" })).not.toContain(
      "Mended",
    );
  });

  it("prepares what --setup says once, and keeps it", { timeout: 120_000 }, async () => {
    const folder = await project();
    // This machine may keep what an earlier test run prepared.
    const setup = [
      "--setup",
      `mkdir made && ln -s ../app.txt made/link && date +%N > made/at && : ${randomUUID()}`,
    ];
    const line = ["run", "--agent", "demo", "--folder", folder, ...setup, ...allowed, "--timeline"];
    const runs: string[] = [];
    for (const _ of [1, 2]) runs.push((await ambit([...line, "run cat made/link made/at"])).stdout);
    expect(runs[0]).toContain("built now, kept");
    expect(runs[1]).toContain("from the cache");
    const [first, second] = runs.map((text) => /got .*run(?: \(.*\))?: one\n *two\n *(\d+)/.exec(text)?.[1]);
    expect(second).toBe(first);
    expect(first).toBeDefined();
  });

  it("keeps what --setup made until one of its inputs changes", { timeout: 120_000 }, async () => {
    const folder = await project();
    writeFileSync(join(folder, "package.json"), '{ "name": "one" }');
    writeFileSync(join(folder, "removed.txt"), "removed later");
    const make = `mkdir made && cp package.json made/ && for f in a*.txt; do echo changed >> $f; done && date +%N > made/at && : ${randomUUID()}`;
    const line = ["run", "--agent", "demo", "--folder", folder, "--setup", make, ...allowed, "--timeline"];
    const found = async () => {
      const { stdout, stderr } = await ambit([...line, "run cat made/at app.txt; ls"]);
      expect(stderr).toContain("the setup is kept until package.json or a command of it changes");
      const at = /got .*run(?: \(.*\))?: (\d+)/.exec(stdout)?.[1];
      expect(at, stdout).toBeDefined();
      return { at, stdout };
    };
    const first = await found();
    // The folder's own files are as they are there, whatever the setup did to them.
    expect(first.stdout).not.toContain("changed\n");
    expect(first.stdout).toContain("removed.txt");
    writeFileSync(join(folder, "app.txt"), "three\n");
    rmSync(join(folder, "removed.txt"));
    const second = await found();
    expect(second.at).toBe(first.at);
    expect(second.stdout).toContain("from the cache");
    expect(second.stdout).toContain("three");
    expect(second.stdout).not.toContain("removed.txt");
    writeFileSync(join(folder, "package.json"), '{ "name": "two" }');
    const third = await found();
    expect(third.at).not.toBe(first.at);
    expect(third.stdout).toContain("built now, kept");
  });

  it("runs no configuration that an agent wrote into the folder", async () => {
    const folder = await project();
    const line = ["run", "--agent", "demo", "--folder", ".", "--network", "off", ...allowed];
    const evil = "write ambit.config.mjs process.stdout.write('escaped'); export default {};";
    expect((await ambit([...line, "--apply", evil], { cwd: folder })).code).toBe(0);
    const next = await ambit([...line, "say hi"], { cwd: folder });
    expect(next).toMatchObject({ code: 2, stdout: "" });
    expect(next.stderr).toContain("lies in the folder that the agent's changes are for");
    const named = await ambit([...line, "--config", "ambit.config.mjs", "say hi"], { cwd: folder });
    expect(named.stdout).toContain("escaped");
  });

  it("says what is wrong with its options", async () => {
    const missing = await ambit(["run", "--agent", "demo", "--folder", "/nowhere/at/all", "say hi"]);
    expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining("/nowhere/at/all") });
    const wrong = await ambit(["run", "--agent", "demo", "--filesystem", "workspce", "say hi"]);
    expect(wrong.code).toBe(4);
    expect(wrong.stdout).toContain("sandboxPermission.filesystem");
  });
});
