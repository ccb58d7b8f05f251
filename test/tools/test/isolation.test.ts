// needs: jail
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { systemTrust, trustVariables } from "@ambit/egress/credentials";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { asking, ownToolsAllowed } from "./support/agents.js";
import { Stage } from "./support/stage.js";
import { callbackTool, pythonTool } from "./support/tools.js";

let confined: Stage;
let unconfined: Stage;
beforeAll(async () => {
  [confined, unconfined] = await Promise.all([Stage.open(), Stage.open({ unconfined: "prefer" })]);
});
afterAll(() => Promise.all([confined.close(), unconfined.close()]));

const spy = readFileSync(fileURLToPath(new URL("./support/spy.py", import.meta.url)), "utf8");

/** New for each run, so that values of an earlier one aren't found. */
function secretsOf(run: string) {
  return {
    toolSecret: `tool-secret-${run}`,
    toolCode: `tool-code-${run}`,
    authorization: `authorization-${run}`,
    modelKey: `key-of-the-model-${run}`,
  };
}

/** Keeps its secret at every possible place: its environment, a child's environment, memory, files. */
function victim({ toolSecret, toolCode }: ReturnType<typeof secretsOf>, env: object): object {
  const code = `
import os, pathlib, subprocess, time
# ${toolCode}
def main():
    secret = os.environ.get("TOOL_SECRET") or "${toolSecret}"
    child = subprocess.Popen(["sleep", "60"], env={"INHERITED": secret})
    for folder in (os.environ["HOME"], os.environ.get("TMPDIR", "/tmp")):
        pathlib.Path(folder, "kept-by-the-victim").write_text(secret)
    pathlib.Path("victim-is-ready").touch()
    while not os.path.exists("spy-is-done"): time.sleep(0.01)
    child.kill()
    return len(secret)
`;
  return pythonTool("victim", code, { ...env, timeoutMs: 30_000 });
}

interface Found {
  readonly found: Readonly<Record<string, string>>;
  readonly looked: { readonly processes: number; readonly files: number };
}

async function spied(stage: Stage, from: "tool" | "agent", run: string, env: object): Promise<Found> {
  const secrets = secretsOf(run);
  const reversed = (text: string) => [...text].reverse().join("");
  // An agent may have its own key.
  const expected = Object.entries(secrets).filter(([name]) => from === "tool" || name !== "modelKey");
  const needles = expected.map(([, text]) => reversed(text));
  // Unconfined, it would search the whole host: the sessions' folder is enough.
  const roots = stage === unconfined ? { roots: [".", "/var/lib/ambit"] } : {};
  const input = JSON.stringify({ needles, runner: process.pid, ...roots });
  const attack = from === "tool" ? `& call spy ${input}` : `& run python3 spy.py '${input}'`;
  const finished = await stage.run({
    harness: "demo",
    ...asking(`& call victim {}\n${attack}`),
    permissions: { rules: ownToolsAllowed },
    customTools: [
      victim(secrets, env),
      pythonTool("spy", spy, { timeoutMs: 30_000 }),
      callbackTool("call_back"),
    ],
    harnessFiles: [{ path: "spy.py", content: spy }],
    toolCallback: { endpoint: "http://127.0.0.1:9/tools", authorization: secrets.authorization },
    modelConnection: {
      credentials: [{ binding: { kind: "environment", name: "SOME_KEY" }, value: secrets.modelKey }],
    },
  });
  expect(await finished.result).toMatchObject({
    ok: true,
    receipt: { confinement: stage === confined ? "confined" : "unconfined" },
  });
  expect(finished.resultsOf("victim")).toMatchObject([{ output: String(secrets.toolSecret.length) }]);
  const [output = ""] = String(finished.resultsOf(from === "tool" ? "spy" : "run")[0]?.output).split("\n");
  const answer: Found = JSON.parse(output);
  const names = Object.entries(answer.found).map(([needle, where]) => {
    const name = expected.find(([, text]) => reversed(text) === needle)?.[0] ?? needle;
    return [name, where];
  });
  return { ...answer, found: Object.fromEntries(names) };
}

describe.each(["tool", "agent"] as const)("a spy in another %s's process", { retry: 0 }, (from) => {
  it("finds nothing of a tool's secret, its code, the callback's authorization, the model's key", async () => {
    const secret = { env: { TOOL_SECRET: secretsOf(`${from}-1`).toolSecret } };
    const { found, looked } = await spied(confined, from, `${from}-1`, secret);
    expect(found).toEqual({});
    expect(looked.processes).toBeGreaterThan(0);
    expect(looked.files).toBeGreaterThan(0);
  });

  it("finds all of them where nothing is confined (the control)", { timeout: 60_000 }, async () => {
    // Without `env`, which is refused in an unconfined run.
    const { found } = await spied(unconfined, from, `${from}-2`, {});
    const all = ["authorization", "toolCode", "toolSecret", ...(from === "tool" ? ["modelKey"] : [])];
    expect(Object.keys(found).sort()).toEqual(all.sort());
  });
});

it("a tool with its own values is never run unconfined", { retry: 0 }, async () => {
  const tool = pythonTool("needs", "def main(): return 1", { env: { A: "b" } });
  const run = await unconfined.run({ harness: "demo", ...asking("call needs"), customTools: [tool] });
  expect((await run.result).receipt).toMatchObject({
    confinement: "confined",
    required: expect.arrayContaining(["environment.per-tool"]),
  });
});

it("a tool sees the variables that it was given, and the agent none of them", { retry: 0 }, async () => {
  const code = "import os\ndef main(): return sorted(os.environ)";
  const tools = [
    pythonTool("one", code, { env: { ONE: "1" } }),
    pythonTool("two", code, { env: { TWO: "2" } }),
  ];
  const run = await confined.run({
    harness: "demo",
    ...asking("call one\ncall two\nrun env"),
    permissions: { rules: ownToolsAllowed },
    customTools: tools,
  });
  await run.result;
  // PWD comes from the shell that starts every process in a jail.
  const trust = (await systemTrust()) ?? { authority: "", bundle: "" };
  const allowed = [
    ...["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "PWD", "TMPDIR", "USER"],
    ...["ASAN_OPTIONS", "LSAN_OPTIONS"],
    ...Object.keys(trustVariables(trust)),
  ];
  const named = (tool: string): string[] => JSON.parse(String(run.resultsOf(tool)[0]?.output));
  expect(named("one").filter((name) => !allowed.includes(name))).toEqual(["ONE"]);
  expect(named("two").filter((name) => !allowed.includes(name))).toEqual(["TWO"]);
  expect(String(run.resultsOf("run")[0]?.output)).not.toMatch(/^(ONE|TWO)=/m);
});
