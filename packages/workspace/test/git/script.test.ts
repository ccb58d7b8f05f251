// needs: git
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import type { Sandbox } from "@ambit/core/plugin";
import { describe, expect, it, onTestFinished } from "vitest";
import { argvOf, Git, type GitCommand, Outputs, TooMuchOutput } from "../../src/git/git.js";

import { hostSandbox } from "../host-sandbox.js";

const init: GitCommand = { args: ["init", "--quiet", "--template="] };
/** Prints its argument as it is. */
const echo = (text: string): GitCommand => ({
  args: ["-c", `alias.echo=!printf %s '${text}'`, "echo"],
});
const fails = (text: string): GitCommand => ({
  args: ["-c", `alias.fails=!echo '${text}' >&2; exit 7`, "fails"],
});
const warns = (text: string): GitCommand => ({ args: ["-c", `alias.warns=!echo '${text}' >&2`, "warns"] });

function newGit(spawn?: (sandbox: Sandbox) => Sandbox["spawn"], received?: (percent: number) => void): Git {
  const folder = mkdtempSync(join(tmpdir(), "ambit-git-script-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const sandbox = hostSandbox(folder);
  const { signal } = new AbortController();
  const wrapped = spawn === undefined ? sandbox : { ...sandbox, spawn: spawn(sandbox) };
  return new Git({ sandbox: wrapped, signal, isPlain: false, maxFileBytes: 100_000, received }, "one");
}

describe("commands of git in one process", () => {
  it("have their own outputs, and one of them reads exactly its input", async () => {
    const input = Buffer.from([0, 10, 255, 32]);
    const stored: GitCommand = { args: ["hash-object", "-w", "--stdin"], input };
    const [first, last] = [echo("$1 `id` \\ \n\n"), echo("")];
    const ended = await newGit().run([init, first, stored, last]);
    expect(ended).toMatchObject({ code: 0, printed: "", isTooMuch: false });
    expect(ended.outputs.get(first)?.toString()).toBe("$1 `id` \\ \n\n");
    // As `git hash-object` says outside.
    expect(ended.outputs.get(stored)?.toString()).toMatch(/^[0-9a-f]{40}\n$/);
    expect(ended.outputs.get(last)?.toString()).toBe("");
    const git = newGit();
    const [id = ""] = (await git.run([init, stored])).stdout.toString().split("\n");
    expect((await git.run([{ args: ["cat-file", "blob", id] }])).stdout).toEqual(input);
  });

  it("take none of the input that is another one's", async () => {
    const greedy: GitCommand = { args: ["-c", "alias.greedy=!cat", "greedy"] };
    const reader = { ...greedy, input: Readable.from([Buffer.from("for the second")]) };
    const ended = await newGit().run([init, greedy, reader]);
    expect(ended.outputs.get(greedy)?.toString()).toBe("");
    expect(ended.stdout.toString()).toBe("for the second");
    await expect(newGit().run([{ ...reader, input: "" }, reader])).rejects.toThrow("only one command");
  });

  it("end at the first that fails, with what that one said and nothing of the others", async () => {
    const [before, failing, after] = [warns("403 from the host"), fails("its own words"), echo("never")];
    const ended = await newGit().run([init, before, failing, after]);
    expect(ended).toMatchObject({ code: 7, printed: "its own words\n", isTooMuch: false });
    expect([init, before, failing, after].map((one) => ended.outputs.has(one))).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  it("say how much has arrived, and nothing of it is among the words of the one that fails", async () => {
    const received: number[] = [];
    const printed = [
      "remote: Counting objects: 100%% (3/3), done.\\n",
      "Receiving objects:  40%% (2/5)\\r",
      "Receiving objects: 100%% (5/5), 9 KiB, done.\\n",
      "remote: Receiving objects: 50%% is said by the host\\n",
      // The host chooses how long its line is: its last words may begin a piece that is read.
      `remote: ${"x".repeat(20_000)}Receiving objects: 51%%\\r`,
      "remote: Found 401 objects to send. (403 ms)\\r\\n",
      "remote: Preparing the 404th pack:  41%% (401/403)\\r",
      // Its end alone is among the last characters that are kept.
      `remote: Compressing objects:  41%% (${"401/".repeat(5_000)})\\n`,
      "From https://403.example\\n * [new ref]  HEAD -> refs/ambit/source\\n",
      "its own words\\n",
    ];
    const failing: GitCommand = {
      args: ["-c", `alias.fetching=!printf '${printed.join("")}' >&2; exit 7`, "fetching"],
    };
    const ended = await newGit(undefined, (percent) => received.push(percent)).run([init, failing]);
    expect(received.at(-1)).toBe(100);
    expect(received).toEqual([40, 100]);
    expect(ended.code).toBe(7);
    expect(ended.printed.replaceAll("x", "")).toBe("Receiving objects: 51%\rits own words\n");
    // The control: without a reader of the progress, they are what the command has printed.
    expect((await newGit().run([init, failing])).printed).toContain("403.example");
  });

  it("may each print so much and no more, and one that prints more is ended", async () => {
    const within = { ...echo("12345"), maxOutput: 5 };
    const beyond = { ...echo("123456"), maxOutput: 5 };
    expect((await newGit().run([init, within, within])).code).toBe(0);
    const ended = await newGit().run([init, within, beyond, echo("never")]);
    expect(ended).toMatchObject({ code: null, isTooMuch: true });
    expect(ended.outputs.get(within)?.toString()).toBe("12345");
    expect(ended.outputs.has(beyond)).toBe(false);
  });

  it("pass on what the last one prints, which isn't started after a failure", async () => {
    let taken = "none";
    const take = async (bytes: AsyncIterable<Uint8Array>) => {
      taken = String(await buffer(bytes));
    };
    const failed = await newGit().run([init, fails("no"), echo("text")], take);
    expect([failed.code, taken]).toEqual([7, "none"]);
    const ended = await newGit().run([init, echo("first"), echo("text")], take);
    expect([ended.code, taken]).toEqual([0, "text"]);
  });

  it("write no file beyond the limit, whichever of them it is", async () => {
    const write = (bytes: number): GitCommand => ({
      args: ["-c", `alias.fill=!head -c ${bytes} /dev/zero > "$GIT_DIR/large"`, "fill"],
    });
    expect((await newGit().run([init, write(100_000), echo("")])).code).toBe(0);
    expect((await newGit().run([init, write(200_000), echo("")])).code).not.toBe(0);
  });

  it("failed where the process ends well before all of them have run", async () => {
    const early = newGit((sandbox) => (command) => sandbox.spawn({ ...command, argv: ["/bin/true"] }));
    expect((await early.run([init, echo("text")])).code).toBe(null);
  });
});

describe("what a hostile repository prints", () => {
  const end = "0123456789abcdef";
  const outputs = (text: string) => new Outputs(Readable.from([...text].map((one) => Buffer.from(one))), end);

  it("can't end its own output: the control does, with a marker that it knows", async () => {
    const forged = outputs(`list${end}forged${end}last`);
    expect(String((await forged.next(100)).output)).toBe("list");
    expect(String((await forged.next(100)).output)).toBe("forged");

    const markers: string[] = [];
    const git = newGit((sandbox) => (command) => {
      markers.push(command.argv[6] ?? "");
      // No command of git gets it.
      expect(JSON.stringify(command.env)).not.toContain(markers.at(-1));
      return sandbox.spawn(command);
    });
    await git.run([init, echo("")]);
    const guess = markers[0] ?? "";
    const hostile = echo(`list${guess}forged`);
    const ended = await git.run([hostile, echo("last")]);
    expect(ended.outputs.get(hostile)?.toString()).toBe(`list${guess}forged`);
    expect(ended.stdout.toString()).toBe("last");
    expect(new Set(markers).size).toBe(2);
    expect(guess).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("is found wherever its parts are cut", async () => {
    const read = outputs(`0123${end.slice(0, -1)}${end}${end}0`);
    expect(String((await read.next(100)).output)).toBe(`0123${end.slice(0, -1)}`);
    expect(await read.next(100)).toEqual({ output: Buffer.alloc(0), isFollowed: true });
    expect(await read.next(100)).toEqual({ output: Buffer.from("0"), isFollowed: false });
    await expect(outputs("123456").next(5)).rejects.toThrow(TooMuchOutput);
  });

  it("is no text of the script, nor is any other argument", () => {
    const about = { settings: ["a.b=c"], maxFileBytes: 1_024, tree: "/tree", marker: end };
    const [shell, option, script, ...rest] = argvOf([init, echo("$(id)")], about);
    expect([shell, option]).toEqual(["/bin/sh", "-c"]);
    expect(script).toMatch(/^[-a-z0-9$"{}<>/%&| \n]+$/);
    expect(script).not.toMatch(/id|tree|a\.b|init/);
    expect(rest).toEqual(expect.arrayContaining(["sh", "2", "/tree", end, "-c", "a.b=c", ...init.args]));
  });
});
