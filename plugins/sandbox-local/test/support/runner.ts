import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { argumentsOf, hostPids, statusRow } from "./host-processes.js";
import { specOf } from "./specs.js";

export interface OtherRunner {
  readonly child: ChildProcess;
  /** The first output of its daemon's script. */
  readonly said: string;
  readonly evidence: Record<string, string | number | boolean>;
  /** Names its sandbox's files for another runner. */
  readonly remains?: string;
  /** Sends SIGKILL and waits for its end. */
  kill(): Promise<void>;
  /** Sends SIGKILL to its watch process too, so that nothing cleans up. */
  killWithWatch(): Promise<void>;
}

export interface RunnerOptions {
  readonly spec?: object;
  readonly user?: { readonly uid: number; readonly gid: number };
  /** A descriptor that the runner inherits, and so might its children. */
  readonly extra?: number;
}

/** A runner in a separate process, with one sandbox in which `script` runs. */
export async function startRunner(
  config: object,
  script: string,
  { spec = {}, user, extra }: RunnerOptions = {},
): Promise<OtherRunner> {
  const program = fileURLToPath(new URL("./runner.mjs", import.meta.url));
  const { onDecision: _unused, log: _too, ...plain } = specOf();
  const texts = [config, { ...plain, ...spec }, script].map((part) => JSON.stringify(part));
  const child = spawn(process.execPath, [program, ...texts], {
    stdio: ["ignore", "pipe", "inherit", ...high(extra)],
    cwd: "/",
    ...user,
  });
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  };
  onTestFinished(kill);
  const [line] = await Promise.race([
    once(createInterface({ input: pipeOf(child) }), "line"),
    once(child, "exit").then(([code]) => {
      throw new Error(`The other runner ended with ${code} before it had a sandbox`);
    }),
  ]);
  const killWithWatch = async () => {
    await killWatchOf(child.pid ?? 0);
    await kill();
  };
  return { child, kill, killWithWatch, ...JSON.parse(String(line)) };
}

/** The watch process ends with its runner; without it, started processes are left. */
export async function killWatchOf(runner: number): Promise<void> {
  for (const pid of hostPids()) {
    const isChild = statusRow(pid, "PPid") === String(runner);
    if (isChild && (await argumentsOf(pid)).includes("ambit-watch")) process.kill(Number(pid), "SIGKILL");
  }
}

function pipeOf(child: ChildProcess): NodeJS.ReadableStream {
  if (child.stdout === null) throw new Error("The other runner has no standard output");
  return child.stdout;
}

/** Puts a descriptor at number 40: of those it inherits, Node closes only the first ones for its children. */
export function high(descriptor: number | undefined): ("ignore" | number)[] {
  if (descriptor === undefined) return [];
  return [...Array.from({ length: 37 }, () => "ignore" as const), descriptor];
}
