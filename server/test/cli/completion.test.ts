import { execFileSync } from "node:child_process";
import { Command, Option } from "commander";
import { describe, expect, it } from "vitest";
import { completionScript } from "../../src/cli/completion.js";

const program = new Command("ambit");
program.command("serve").description("listen").option("--port <number>", "a port");
program
  .command("run <file>")
  .description("it's run")
  .option("--json", "as data")
  .addOption(new Option("--older").hideHelp());

/** What bash offers for a command line whose last word is being completed. */
function offered(...words: readonly string[]): readonly string[] {
  const script = `${completionScript("bash", program)}
COMP_WORDS=(ambit "$@"); COMP_CWORD=$#; _ambit; printf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync("bash", ["-c", script, "bash", ...words], { encoding: "utf8" })
    .trim()
    .split("\n");
}

describe("shell completion", () => {
  it.each([
    ["a command", ["ser"], ["serve"]],
    ["an option of a command", ["serve", "--p"], ["--port"]],
    ["every option", ["run", "--"], ["--json"]],
  ])("completes %s in bash", (_what, words, expected) => {
    expect(offered(...words)).toEqual(expected);
  });

  it("quotes descriptions for fish", () => {
    expect(completionScript("fish", program)).toContain(String.raw`-a run -d 'it\'s run'`);
  });
});
