import { existsSync } from "node:fs";
import { RunTimedOut, SandboxFailed } from "@ambit/core/plugin";
import { describe, expect, test } from "vitest";
import { outcomeOf } from "../src/executor.js";
import { BareSandbox } from "./bare-sandbox.js";
import { executorOf, type Given, node, python, request, TestRun } from "./test-run.js";

const executor = executorOf({ maxResultBytes: 200_000 });

function execute(
  given: Given,
  { input = {}, signal = new AbortController().signal, sandbox = new BareSandbox() } = {},
) {
  return new TestRun(executor, sandbox).call(given, input, signal);
}

describe("the returned value is the result", () => {
  const cases: [what: string, tool: Given, input: Record<string, unknown>, output: string][] = [
    ["python: keyword arguments", python("def main(a, b): return a + b"), { a: 1, b: 2 }, "3"],
    ["python: async", python("async def main(): return {'x': [1, None]}"), {}, '{"x":[1,null]}'],
    ["python: text as it is", python("def main(): return 'grüße\\n'"), {}, "grüße\n"],
    ["python: nothing", python("def main(): pass"), {}, "null"],
    [
      "python: not its prints",
      python("import os\ndef main():\n  print('{}'); os.system('echo noise'); return 7"),
      {},
      "7",
    ],
    ["node: bare main", node("function main({ a }) { return a * 2 }"), { a: 21 }, "42"],
    ["node: arrow", node("const main = async () => 'later'"), {}, "later"],
    ["node: module.exports.main", node("module.exports.main = () => 1"), {}, "1"],
    ["node: module.exports.default", node("module.exports.default = () => 2"), {}, "2"],
    ["node: module.exports", node("module.exports = () => 3"), {}, "3"],
    ["node: export function main", node("export function main({ a }) { return a }"), { a: "x" }, "x"],
    [
      "node: export default",
      node("import { sep } from 'node:path'; export default async () => sep"),
      {},
      "/",
    ],
    ["node: unexported main of a module", node("import 'node:fs'; function main() { return 5 }"), {}, "5"],
    [
      "node: top-level await",
      node("const x = await Promise.resolve(6); export const main = () => x"),
      {},
      "6",
    ],
    ["node: undefined", node("const main = () => undefined"), {}, "null"],
    [
      "node: not its prints",
      node("console.log('{}'); const main = () => { console.log('x'); return 8 }"),
      {},
      "8",
    ],
    [
      "node: not its children's prints",
      node(
        "const main = () => { require('child_process').execSync('echo noise', { stdio: 'inherit' }); return 9 }",
      ),
      {},
      "9",
    ],
  ];
  test.each(cases)("%s", async (_what, tool, input, output) => {
    expect(await execute(tool, { input })).toMatchObject({ status: "completed", output });
  });

  test("a large value arrives completely", async () => {
    const large = "é".repeat(75_000);
    const outcome = await execute(node("const main = () => 'é'.repeat(75000)"));
    expect(outcome).toEqual({ status: "completed", output: large, data: large });
  });
});

describe("a failure is a clear text for the model", () => {
  const cases: [what: string, tool: Given, expected: RegExp][] = [
    ["python: no main", python("x = 1"), /must define a callable main\(\*\*inputs\)/],
    ["node: no main", node("const x = 1"), /must define or export a callable main\(inputs\) function/],
    [
      "python: an exception, with its line",
      python("def main():\n  raise ValueError('bad')"),
      /line 2[\s\S]*ValueError: bad/,
    ],
    ["python: wrong arguments", python("def main(a): pass"), /TypeError: main\(\) missing 1 required/],
    ["python: syntax", python("def main(:"), /SyntaxError/],
    [
      "node: an exception, with its line",
      node("\nfunction main() { throw new TypeError('bad') }"),
      /TypeError: bad\n.*tool\.cjs:2/,
    ],
    ["node: syntax", node("function main( {"), /SyntaxError/],
    ["node: a rejection of no error", node("const main = () => Promise.reject('why')"), /threw why/],
    [
      "node: thrown later",
      node("const main = () => new Promise(() => setTimeout(() => { throw Error('late') }))"),
      /late/,
    ],
    ["python: not JSON", python("def main(): return {1, 2}"), /not JSON: Object of type set/],
    ["python: NaN", python("def main(): return float('nan')"), /not JSON/],
    ["node: not JSON", node("const main = () => Symbol()"), /not JSON: a symbol/],
    ["node: a cycle", node("const main = () => { const a = {}; a.a = a; return a }"), /circular/],
    ["python: exit", python("def main(): raise SystemExit(3)"), /called exit\(3\)/],
    ["node: exit", node("const main = () => process.exit(3)"), /exited 3\n[\s\S]*no stderr/],
    ["node: exit without a result", node("const main = () => process.exit(0)"), /ended without a result/],
    ["python: a signal", python("import os\ndef main(): os.kill(os.getpid(), 15)"), /ended by SIGTERM/],
    ["python: killed", python("import os\ndef main(): os.kill(os.getpid(), 9)"), /was killed/],
    ["node: too much", node("const main = () => 'x'.repeat(1e7)"), /returned more than 200000 bytes/],
    [
      "python: prints come with the failure",
      python("def main():\n  print('hint'); raise KeyError('k')"),
      /It printed:\nhint/,
    ],
    [
      "python: 10 MB of prints are capped",
      python("def main():\n  print('x' * 10**7); raise KeyError('k')"),
      /^.{0,2500}$/s,
    ],
  ];
  test.each(cases)("%s", async (_what, tool, expected) => {
    const outcome = await execute(tool);
    expect(outcome.status).toBe("failed");
    expect(outcome.status === "failed" && outcome.output).toMatch(expected);
  });
});

describe("the end of a call", () => {
  test.each([
    ["python", python("while True: pass")],
    ["node", node("for (;;);")],
    [
      "a child that detaches",
      python("import os, time\ndef main():\n  os.system('sleep 600 &'); time.sleep(600)"),
    ],
  ])("a time limit: %s", async (_what, tool) => {
    const limit = new AbortController();
    setTimeout(() => limit.abort(new RunTimedOut("too long")), 300);
    const sandbox = new BareSandbox();
    const outcome = await execute(tool, { signal: limit.signal, sandbox });
    expect(outcome).toMatchObject({ status: "failed", output: "code tool timed out after 300ms" });
    expect(sandbox.scratch.filter((folder) => existsSync(folder))).toEqual([]);
  });

  test("a value of very many parts is a failure", () => {
    const reply = `{"returned":[${"{},".repeat(60_000)}0]}`;
    expect(outcomeOf({ exit: { code: 0, signal: null }, reply, prints: "" })).toEqual({
      status: "failed",
      output: "code tool returned what holds more than 100,000 values: return less, or a summary",
    });
  });

  test("an abort before the start runs nothing", async () => {
    const outcome = await execute(python("def main(): return 1"), { signal: AbortSignal.abort() });
    expect(outcome).toEqual({ status: "failed", output: "code tool was aborted" });
  });

  test("in a sandbox with a separate image, the interpreter is the one on the image's PATH", async () => {
    const sandbox = new BareSandbox();
    sandbox.image = { searchPath: process.env.PATH ?? "", copyRoot: "/copies", mounted: false };
    await new TestRun(executorOf({ path: "/nowhere" }), sandbox).call(python("def main(): return 1"));
    expect(sandbox.commands.map(({ env }) => env.PATH)).toEqual([process.env.PATH]);
  });

  test("a sandbox that can't spawn is the tool's failure, not the run's", async () => {
    const sandbox = new BareSandbox();
    sandbox.spawn = () => Promise.reject(new Error("no room"));
    const outcome = await execute(python("def main(): return 1"), { sandbox });
    expect(outcome).toEqual({ status: "failed", output: "code tool could not be started in the sandbox" });
  });

  test("a sandbox's refusal is reported with its reason", async () => {
    const sandbox = new BareSandbox();
    sandbox.spawn = () => Promise.reject(new SandboxFailed("a link stands in the way"));
    const outcome = await execute(python("def main(): return 1"), { sandbox });
    expect(outcome).toEqual({
      status: "failed",
      output: "code tool could not be started in the sandbox: a link stands in the way",
    });
  });
});

describe("values", () => {
  test("reach the tool, but are in neither its arguments nor its initial environment", async () => {
    const sandbox = new BareSandbox();
    const code =
      "import os\ndef main(): return [os.environ['TOKEN'], open('/proc/self/cmdline').read(), open('/proc/self/environ').read()]";
    const outcome = await execute(
      { ...python(code), env: { TOKEN: "s3cret-value" } },
      { sandbox, input: {} },
    );
    const [value, commandLine, environment] =
      outcome.status === "completed" ? JSON.parse(outcome.output) : [];
    expect(value).toBe("s3cret-value");
    expect(commandLine).toContain("reply_to");
    expect(`${commandLine}${environment}`).not.toContain("s3cret-value");
    expect(JSON.stringify(sandbox.commands)).not.toContain("s3cret-value");
  });

  test.each([
    ["python", python("import os\ndef main(): return sorted(os.environ)")],
    ["node", node("const main = () => Object.keys(process.env).sort()")],
  ])("%s sees only named variables, nothing of the runner's", async (_what, tool) => {
    process.env.AMBIT_CANARY = "canary";
    const outcome = await execute(tool);
    delete process.env.AMBIT_CANARY;
    const names: string[] = outcome.status === "completed" ? JSON.parse(outcome.output) : [];
    expect(names).toContain("PATH");
    const allowed = [
      "PATH",
      "HOME",
      "LANG",
      "LC_ALL",
      "LC_CTYPE",
      "TZ",
      "TMPDIR",
      "PWD",
      "OLDPWD",
      "SHLVL",
      "_",
    ];
    expect(names.filter((name) => !allowed.includes(name))).toEqual([]);
  });
});

test("a missing field of a code tool is named", () => {
  const tool = { name: "t", kind: "code", inputSchema: {} };
  expect(executor.issues({ tool, request }).map(({ path }) => path)).toEqual(["runtime", "code"]);
  expect(executor.issues({ tool: { ...tool, ...python("def main(): pass") }, request })).toEqual([]);
});
