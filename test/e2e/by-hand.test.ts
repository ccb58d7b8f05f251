// needs: jail, git
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startModelServer } from "@ambit/model-server";
import { describe, expect, it } from "vitest";
import { ambit, emptyFolder, startAmbit, startTerminal } from "./support/ambit.js";

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
    expect(shown.stdout).toContain(".gitignore app.txt logo.bin run.sh untracked.txt");
    expect(shown.stdout).not.toContain("secret.env");
    expect(shown.stdout).toContain("-two\n+2\n");
    expect(shown.stderr).toContain('"link"');
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
    await child.answer(/May write be called\?[\s\S]*a\.txt[\s\S]*\[n\]o/, "a");
    await child.answer(/May run be called\?[\s\S]*c\.txt[\s\S]*\[n\]o/, "o");
    await child.answer(/May run be called\?[\s\S]*d\.txt[\s\S]*\[n\]o/, "n");
    await child.answer(/Apply 3 changes[\s\S]*\[y\/n\]/, "y");
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
    await child.answer(/Apply 1 change [\s\S]*\[y\/n\]/, "\u0003");
    expect(await child.exit, child.printed()).toBe(130);
    expect(child.printed()).toContain("nothing was applied");
    expect(existsSync(join(folder, "a.txt"))).toBe(false);
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
    await child.answer(
      /look_out is yours to execute[\s\S]*"window": "left"[\s\S]*declines:/,
      "rain and wind",
    );
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

  it("takes a real agent with its key outside, and brings its change back", {
    timeout: 120_000,
  }, async () => {
    await using model = await startModelServer({ expectedKey: "key-of-the-person" });
    const folder = await project();
    const { code, stdout, stderr } = await ambit(
      [
        ...["run", "--agent", "gemini", "--folder", folder, "--network", "off", "--secrets", "hidden"],
        ...[...allowed, "--timeline", "--apply", "[[shell sed -i s/two/2/ app.txt; env]] [[say Fixed.]]"],
      ],
      { env: { GEMINI_API_KEY: "key-of-the-person", GOOGLE_GEMINI_BASE_URL: model.url } },
    );
    expect(code, stderr + stdout).toBe(0);
    expect(stdout).toContain("applied 1 change");
    expect(stdout).not.toContain("key-of-the-person");
    expect(readFileSync(join(folder, "app.txt"), "utf8")).toBe("one\n2\n");
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
