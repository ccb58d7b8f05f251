import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import type { NetworkBoundary } from "@ambit/core/plugin";
import { jailEnvironment } from "../confined/environment.js";
import type { ConfinedSandbox } from "../confined/sandbox.js";
import { closedBoundary, expectThat, runIn, shell, type Trial } from "./trial.js";

const everyEnvironment = `cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; env; echo ran`;
const canaryName = "AMBIT_PROBE_CANARY";
const path = "/usr/local/bin:/usr/bin:/bin";

const namedOnly: Trial = {
  shows: ["environment.named-only"],
  run: async (bench) => {
    const [canary, named] = [randomBytes(12).toString("hex"), randomBytes(12).toString("hex")];
    const sandbox = await bench.shared(closedBoundary);
    process.env[canaryName] = canary;
    try {
      const { stdout: control } = await promisify(execFile)("/bin/sh", ["-c", everyEnvironment], {
        maxBuffer: 1 << 26,
      });
      expectThat(
        control.includes(canary),
        "the control didn't inherit the canary either, so nothing is proven",
      );
      const { stdout } = await runIn(sandbox, shell(everyEnvironment), { env: { PATH: path, NAMED: named } });
      expectThat(stdout.includes(named) && stdout.endsWith("ran\n"), "the named variable didn't arrive");
      expectThat(!stdout.includes(canary), "a variable of the runner's was found inside");
      const unnamed = await unnamedIn(sandbox);
      expectThat(unnamed.length === 0, `variables were there that nothing had named: ${unnamed.join(", ")}`);
    } finally {
      delete process.env[canaryName];
    }
    return {
      "environment.named-only":
        "a canary in the runner's environment was inherited by a plain child, and was in no process's environment inside; a named variable was",
    };
  },
};

const closed: NetworkBoundary = { mode: "off", rules: [] };

/** Names of variables that neither the command nor confinement sets. `PWD` is set by the shell that starts it. */
async function unnamedIn(sandbox: ConfinedSandbox): Promise<readonly string[]> {
  const env = { NAMED: "1" };
  const { stdout } = await runIn(sandbox, ["/usr/bin/env"], { env });
  const given = new Set([...Object.keys(jailEnvironment({ env }, "own", closed)), "PWD"]);
  const names = stdout.split("\n").map((line) => line.split("=")[0] ?? "");
  expectThat(names.includes("NAMED"), "the variables couldn't be listed, so nothing is proven");
  return names.filter((name) => name !== "" && !given.has(name));
}

/** Everything that another process might see of a process: variables, arguments, scratch, home, memory. */
const search = `
cat /proc/*/environ /proc/*/cmdline /tmp/* "$HOME"/* /dev/shm/* 2>/dev/null | tr '\\0' '\\n'
ls /proc | grep -c '^[0-9]'
echo ran`;

const perTool: Trial = {
  shows: ["environment.per-tool"],
  run: async (bench) => {
    const secret = randomBytes(12).toString("hex");
    const sandbox = await bench.shared(closedBoundary);
    const script = `for place in /tmp "$HOME" /dev/shm; do echo "$SECRET" > "$place/kept"; done; ${search}; sleep 60`;
    const owner = await sandbox.spawn({
      argv: [...shell(script), "sh", secret],
      env: { PATH: path, SECRET: secret },
      signal: bench.signal,
    });
    const own = await readUntil(owner.stdout, "ran\n");
    expectThat(
      own.split(secret).length > 4,
      "a tool couldn't find its own values either, so nothing is proven",
    );
    for (const role of ["tool", "agent"] as const) {
      const { stdout } = await runIn(sandbox, shell(search), { role });
      expectThat(stdout.endsWith("ran\n"), `the search as ${role} didn't run`);
      expectThat(!stdout.includes(secret), `another process of the session (${role}) found a tool's value`);
    }
    await owner.kill();
    return {
      "environment.per-tool":
        "a tool found its own value in its variables, arguments and scratch; another tool and the agent, beside it, found it nowhere",
    };
  },
};

async function readUntil(stream: ReadableStream<Uint8Array>, end: string): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  const reader = stream.getReader();
  while (!text.endsWith(end)) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += decoder.decode(value, { stream: true });
  }
  return text;
}

export const environmentTrials: readonly Trial[] = [namedOnly, perTool];
