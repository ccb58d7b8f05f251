import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** A Node program, started for a measurement. */
export interface Program {
  readonly child: ChildProcess;
  readonly pid: number;
  /** The last part of its stderr, for errors. */
  lastWords(): string;
  /** Sends SIGTERM, then SIGKILL. Resolves when it has exited. */
  stop(): Promise<void>;
}

export interface ProgramOptions {
  readonly arguments?: readonly string[];
  /** The complete environment: nothing but PATH is inherited. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly folder?: string;
  /** Whether messages are exchanged: for programs of the bench itself. */
  readonly messages?: boolean;
  /** Options of Node.js, such as `--cpu-prof`. */
  readonly nodeOptions?: readonly string[];
  /** Whether the caller reads its stdout. Default false: it is discarded. */
  readonly prints?: boolean;
}

const maxOutputLength = 2_000;
/** Milliseconds for the exit after SIGTERM. */
const startTimeoutMs = 15_000;

export function startProgram(entry: string, options: ProgramOptions = {}): Program {
  const { arguments: given = [], environment = {}, folder, messages = false, prints = false } = options;
  const child = spawn(process.execPath, [...(options.nodeOptions ?? []), entry, ...given], {
    env: { PATH: process.env.PATH ?? "", ...environment },
    cwd: folder,
    stdio: ["ignore", prints ? "pipe" : "ignore", "pipe", ...(messages ? (["ipc"] as const) : [])],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${entry} can't be started`);
  const ended = once(child, "exit");
  let words = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    words = (words + text).slice(-maxOutputLength);
  });
  return {
    child,
    pid,
    lastWords: () => words.trim(),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), startTimeoutMs);
      await ended;
      clearTimeout(timer);
    },
  };
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
