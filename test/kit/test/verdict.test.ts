import { spawnSync } from "node:child_process";
import { type AttackOutcome, outcomeOf, python } from "@ambit/attacks";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { skipWithout } from "../../../scripts/vitest/skip-without.ts";
import { type AttackRow, assuranceOf, type Verdict, verdictOf } from "../src/judge/verdict.js";
import { mustProve } from "../src/vitest/must-prove.js";
import { requireProven } from "../src/vitest/require-proven.js";

const outcome = (result: AttackOutcome["result"]): AttackOutcome => ({ result, detail: "" });

describe("the verdict on one attack", () => {
  it.each<
    [control: AttackOutcome["result"], guarded: AttackOutcome["result"], plain: Verdict, needy: Verdict]
  >([
    ["reached", "blocked", "proven", "proven"],
    ["reached", "reached", "escaped", "escaped"],
    ["blocked", "reached", "escaped", "escaped"],
    ["not-run", "reached", "escaped", "escaped"],
    ["impossible", "reached", "escaped", "escaped"],
    ["blocked", "blocked", "toothless", "unproven"],
    ["not-run", "blocked", "broken", "broken"],
    ["reached", "not-run", "broken", "broken"],
    ["blocked", "not-run", "broken", "broken"],
    ["impossible", "blocked", "impossible", "impossible"],
    ["reached", "impossible", "impossible", "impossible"],
    ["reached", "refused", "refused", "refused"],
    ["impossible", "not-run", "broken", "broken"],
  ])("control %s, guarded %s: %s, or %s if it needs a privilege", (control, guarded, plain, needy) => {
    expect(verdictOf({}, outcome(control), outcome(guarded))).toBe(plain);
    expect(verdictOf({ needs: "something" }, outcome(control), outcome(guarded))).toBe(needy);
  });
});

describe("the assurance of a capability", () => {
  const rows = (...verdicts: Verdict[]): AttackRow[] =>
    verdicts.map((verdict) => ({
      id: "x",
      title: "x",
      verdict,
      control: outcome("reached"),
      guarded: outcome("blocked"),
    }));
  const allowed = (result: AttackOutcome["result"]) => [{ id: "y", title: "y", outcome: outcome(result) }];

  it.each([
    [
      "proven by one attack",
      rows("proven", "unproven", "impossible", "refused", "exempt"),
      allowed("reached"),
      "proven",
    ],
    ["escaped by one attack", rows("proven", "escaped"), allowed("reached"), "escaped"],
    ["escaped, and useless too", rows("escaped"), allowed("blocked"), "escaped"],
    ["nothing works inside", rows("proven"), allowed("blocked"), "useless"],
    ["nothing ran inside", rows("proven"), allowed("not-run"), "useless"],
    ["nothing to allow on this host", rows("proven"), allowed("impossible"), "proven"],
    ["an attack that didn't run", rows("proven", "broken"), allowed("reached"), "unproven"],
    ["a toothless attack", rows("proven", "toothless"), allowed("reached"), "unproven"],
    ["nothing shown", rows("unproven", "impossible"), allowed("reached"), "unproven"],
    ["no attack at all", rows(), allowed("reached"), "unproven"],
  ])("%s", (_name, attackRows, allowanceRows, assurance) => {
    expect(assuranceOf(attackRows, allowanceRows)).toBe(assurance);
  });
});

describe("the outcome in a program's output", () => {
  const finished = (stdout: string, code: number | null = 0, signal: string | null = null) => ({
    stdout,
    stderr: "",
    code,
    signal,
  });

  it.each<[name: string, output: ReturnType<typeof finished>, result: AttackOutcome["result"]]>([
    ["nothing", finished(""), "not-run"],
    ["blocked, without having run", finished("BLOCKED x\n"), "not-run"],
    ["ran, and nothing else", finished("RAN\n"), "not-run"],
    ["ran and was blocked", finished("RAN \nBLOCKED x: EPERM\n"), "blocked"],
    ["blocked and then broken", finished("RAN \nBLOCKED x: EPERM\n", 1), "not-run"],
    ["blocked once, reached once", finished("RAN \nBLOCKED x\nREACHED y\n"), "reached"],
    ["reached and then broken", finished("RAN \nREACHED y\n", 1), "reached"],
    ["blocked in one process, broken in another", finished("RAN \nBROKEN y\nBLOCKED x\n"), "not-run"],
    ["killed early", finished("RAN \n", null, "SIGKILL"), "not-run"],
  ])("%s", (_name, output, result) => {
    expect(outcomeOf(output).result).toBe(result);
  });

  it("is broken if what the program needs can't be loaded, which an attempt doesn't take for a refusal", () => {
    skipWithout("python");
    const body = `
def refuse():
    raise PermissionError(13, "a module's file")
ctypes.__dict__["load"] = refuse
attempt("load", lambda: syscall(39))`;
    const { stdout, stderr, status } = spawnSync("python3", ["-c", python(body), "{}"], { encoding: "utf8" });
    expect(outcomeOf(finished(stdout, status))).toMatchObject({
      result: "not-run",
      detail: expect.stringContaining("PermissionError"),
    });
    expect(stderr).toBe("");
  });

  it("counts being killed as blocked only for attacks that may be stopped that way", () => {
    expect(outcomeOf(finished("RAN \n", 137), true).result).toBe("blocked");
    expect(outcomeOf(finished("", 137), true).result).toBe("not-run");
    expect(outcomeOf(finished("RAN \n", 1), true).result).toBe("not-run");
  });
});

describe("what this machine must prove", () => {
  const backend = { name: "local", claims: ["network.deny"] as const };

  it.each([
    ["network.deny", "network.deny", true],
    ["resources.cpu, network.deny", "network.deny", true],
    ["resources.cpu", "resources.cpu", false],
    ["local:resources.cpu", "resources.cpu", true],
    ["other:network.deny", "network.deny", false],
    ["", "network.deny", false],
  ] as const)("%j names %s: %s", (listed, capability, expected) => {
    expect(mustProve(backend, capability, listed)).toBe(expected);
  });

  it("fails a test that needs it, and skips one of what it can't prove", () => {
    vi.stubEnv("AMBIT_MUST_PROVE", "local:network.deny");
    onTestFinished(() => void vi.unstubAllEnvs());
    const skips: (string | undefined)[] = [];
    const skip = (reason?: string): never => {
      skips.push(reason);
      throw new Error("skipped");
    };
    const unproven = { proven: false, reason: "no namespaces", fix: "allow them" } as const;
    const findings = [
      { capability: "network.deny", ...unproven },
      { capability: "resources.cpu", ...unproven },
      { capability: "process.contained", proven: true, how: "seen" },
    ] as const;
    requireProven({ skip }, backend, findings, "process.contained");
    expect(() => requireProven({ skip }, backend, findings, "network.deny")).toThrow("no namespaces");
    expect(skips).toEqual([]);
    expect(() => requireProven({ skip }, backend, findings, "resources.cpu")).toThrow("skipped");
    expect(skips).toEqual(["host: resources.cpu isn't proven here: no namespaces"]);
  });
});
