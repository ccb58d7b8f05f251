import { spawn } from "node:child_process";
import { once } from "node:events";
import { realpathSync } from "node:fs";
import type { Sandbox, ToolScope } from "@ambit/core/plugin";
import codePlugin, { CodeExecutor } from "@ambit/executor-code";
import type { Goal, GoalMeasurement } from "../goal.js";
import { descendantsOf, pssMibOf } from "../machine/processes.js";
import { pause } from "../machine/program.js";
import { interleaved, mediansOf, timed } from "../measure.js";
import { confinement, python as pythonHere, systemPython } from "../needs.js";
import { boundaryOf, openBackend, requestOf, silent } from "../subjects/sandboxes/confined.js";

const limit = { atMost: 1.3 } as const;
const given = { words: ["a", "b", "c"] };
const confined = { network: "own", limited: false } as const;

const tools = {
  python: "def main(words):\n    return {'joined': ' '.join(words)}\n",
  node: "exports.main = ({ words }) => ({ joined: words.join(' ') });\n",
} as const;

/** The same work without a jail and a bootstrap program: reads the call, runs the code, prints the result. */
const plain = {
  python: [
    [systemPython, "-I", "-c"],
    "import json,sys\ncall=json.load(sys.stdin)\nscope={}\nexec(call['code'],scope)\nprint(json.dumps(scope['main'](**call['arguments'])))",
  ],
  node: [
    [realpathSync(process.execPath), "-e"],
    "const call=JSON.parse(require('node:fs').readFileSync(0,'utf8'));const module_={exports:{}};new Function('exports','module',call.code)(module_.exports,module_);console.log(JSON.stringify(module_.exports.main(call.arguments)))",
  ],
} as const;

type Runtime = keyof typeof tools;
const runtimes: readonly Runtime[] = ["python", "node"];

/** Milliseconds between calls: less than any model takes from a tool's result to its next call. */
const thinkingMs = 250;

/** A tool's code in a separate jail, at nearly the cost of its interpreter. */
export const codeTool: Goal = {
  id: "G7",
  title: "code tool in its sandbox ÷ plain spawn, same binary",
  goal: "≤ 1.3",
  needs: [confinement, pythonHere],
  async run({ pairs }) {
    const backend = await openBackend(confined);
    try {
      const sandbox = await backend.open();
      const measurements: GoalMeasurement[] = [];
      for (const runtime of runtimes) {
        measurements.push(
          await calls(
            `${runtime}, a call that starts its own interpreter`,
            runtime,
            fresh,
            sandbox,
            pairs(40),
          ),
          await calls(
            `${runtime}, a call that finds an interpreter waiting`,
            runtime,
            keeping,
            sandbox,
            pairs(40),
          ),
          await waitingMemory(runtime, sandbox),
        );
      }
      return measurements;
    } finally {
      await backend.close();
    }
  },
};

const interpreters = { python: systemPython, node: realpathSync(process.execPath) };
const fresh = new CodeExecutor(codePlugin.config.parse({ interpreters, prewarm: false }));
const keeping = new CodeExecutor(codePlugin.config.parse({ interpreters }));

async function calls(
  what: string,
  runtime: Runtime,
  executor: CodeExecutor,
  sandbox: Sandbox,
  pairs: number,
): Promise<GoalMeasurement> {
  await using run = new OneRun(sandbox);
  const afterThinking = async (step: () => Promise<void>) => {
    await pause(thinkingMs);
    return timed(step);
  };
  const measured = await interleaved(
    () => afterThinking(() => run.call(executor, runtime)),
    () => afterThinking(() => plainly(runtime)),
    { pairs, warmUp: 5 },
  );
  return { what, unit: "×", values: measured.ratios, limit, note: mediansOf(measured, "ms") };
}

/** The additional cost of the waiting interpreter, including its jail. */
async function waitingMemory(runtime: Runtime, sandbox: Sandbox): Promise<GoalMeasurement> {
  const values: number[] = [];
  let processes = 0;
  for (let time = 0; time < 3; time += 1) {
    const others = new Set(descendantsOf(process.pid).map(({ pid }) => pid));
    await using run = new OneRun(sandbox);
    await run.call(keeping, runtime);
    await pause(thinkingMs);
    const waiting = descendantsOf(process.pid).filter(({ pid }) => !others.has(pid));
    processes = waiting.length;
    values.push(waiting.reduce((sum, { pid }) => sum + pssMibOf(pid), 0));
  }
  return {
    what: `${runtime}, the waiting interpreter (PSS)`,
    unit: "MiB",
    values,
    note: `${processes} processes`,
  };
}

/** A run from an executor's view: calls, then its end. An executor knows it by its request. */
class OneRun implements AsyncDisposable {
  static #made = 0;
  readonly #id = `bench-${OneRun.#made++}`;
  readonly #request = requestOf({
    customTools: runtimes.map((runtime) => ({ name: runtime, kind: "code", runtime, code: tools[runtime] })),
  });
  readonly #deferred: (() => void | Promise<void>)[] = [];

  constructor(readonly sandbox: Sandbox) {}

  async call(executor: CodeExecutor, runtime: Runtime): Promise<void> {
    const request = this.#request;
    const tool = request.customTools.find(({ name }) => name === runtime);
    if (tool === undefined) throw new Error("the request lost its tool");
    const scope: ToolScope = {
      runId: this.#id,
      request,
      boundary: boundaryOf(confined),
      sandbox: this.sandbox,
      signal: new AbortController().signal,
      timeoutMs: 30_000,
      idempotencyKey: "call",
      mayAct: () => true,
      defer: (close) => void this.#deferred.push(close),
      log: silent,
    };
    const outcome = await executor.execute({ id: "call", tool, arguments: given }, scope);
    if (outcome.status !== "completed") throw new Error(`the tool failed: ${JSON.stringify(outcome)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#deferred.splice(0)) await close();
  }
}

async function plainly(runtime: Runtime): Promise<void> {
  const [[program, ...options], code] = plain[runtime];
  const child = spawn(program, [...options, code], { stdio: ["pipe", "pipe", "inherit"], env: {} });
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
  });
  child.stdin.end(JSON.stringify({ code: tools[runtime], arguments: given }));
  await once(child, "close");
  if (!printed.includes("a b c")) throw new Error(`the plain ${runtime} failed: ${printed}`);
}
