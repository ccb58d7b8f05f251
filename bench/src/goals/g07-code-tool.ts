import { spawn } from "node:child_process";
import { once } from "node:events";
import { realpathSync } from "node:fs";
import type { Sandbox, ToolScope } from "@ambit/core/plugin";
import codePlugin, { CodeExecutor } from "@ambit/executor-code";
import type { Goal } from "../goal.js";
import { confinement, python as pythonHere, systemPython } from "../machine/needs.js";
import { interleaved, mediansOf, timed } from "../measure.js";
import { boundaryOf, openBackend, requestOf, silent } from "../subjects/confined.js";

const limit = { atMost: 1.3 } as const;
const given = { words: ["a", "b", "c"] };
const confined = { network: "own", limited: false } as const;

const tools = {
  python: "def main(words):\n    return {'joined': ' '.join(words)}\n",
  node: "exports.main = ({ words }) => ({ joined: words.join(' ') });\n",
} as const;

/** The same work without a jail, a bootstrap or a care: reads the call, runs the code, prints the result. */
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

/** A tool's code in a jail of its own, nearly at the price of its interpreter. */
export const codeTool: Goal = {
  id: "G7",
  title: "code tool in its sandbox ÷ plain spawn, same binary",
  goal: "≤ 1.3",
  needs: [confinement, pythonHere],
  async run({ pairs }) {
    const backend = await openBackend(confined);
    try {
      const sandbox = await backend.open();
      const measure = (runtime: "python" | "node") =>
        interleaved(
          () => timed(() => inSandbox(runtime, sandbox)),
          () => timed(() => plainly(runtime)),
          { pairs: pairs(40), warmUp: 5 },
        );
      const python = await measure("python");
      const node = await measure("node");
      return [
        { what: "python", unit: "×", values: python.ratios, limit, note: mediansOf(python, "ms") },
        { what: "node", unit: "×", values: node.ratios, limit, note: mediansOf(node, "ms") },
      ];
    } finally {
      await backend.close();
    }
  },
};

const executor = new CodeExecutor(
  codePlugin.config.parse({
    interpreters: { python: systemPython, node: realpathSync(process.execPath) },
  }),
);

async function inSandbox(runtime: "python" | "node", sandbox: Sandbox): Promise<void> {
  const request = requestOf({
    customTools: [{ name: "join", kind: "code", runtime, code: tools[runtime] }],
  });
  const [tool] = request.customTools;
  if (tool === undefined) throw new Error("the request lost its tool");
  const scope: ToolScope = {
    runId: "bench",
    request,
    boundary: boundaryOf(confined),
    sandbox,
    signal: new AbortController().signal,
    timeoutMs: 30_000,
    log: silent,
  };
  const outcome = await executor.execute({ id: "call", tool, arguments: given }, scope);
  if (outcome.status !== "completed") throw new Error(`the tool failed: ${JSON.stringify(outcome)}`);
}

async function plainly(runtime: "python" | "node"): Promise<void> {
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
