import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Demand, Finished, RunnerProcess } from "@ambit/attacks";

export interface RunnerRequest extends Demand {
  /** A module whose default export makes the backend. */
  readonly module: string;
  readonly id: string;
  /** Its sandbox can be taken over: it reports `handover …`, then what its program says. */
  readonly fence?: number;
  readonly argv: readonly [string, ...string[]];
}

/** Higher than any descriptor that a runtime closes by itself at its start. */
const inheritedDescriptor = 200;
const program = fileURLToPath(new URL("../../dist/stage/runner-main.js", import.meta.url));

export interface RunnerProcessOptions {
  /** Folder for its temporary files: a killed runner leaves some. */
  readonly temporaryFolder: string;
  readonly inheritedFile?: string | undefined;
}

/** A runner in a separate process, with one sandbox in which one program runs. */
export function startRunnerProcess(request: RunnerRequest, options: RunnerProcessOptions): RunnerProcess {
  const { temporaryFolder, inheritedFile } = options;
  const descriptor = inheritedFile === undefined ? undefined : openSync(inheritedFile, "r");
  const between = Array.from({ length: inheritedDescriptor - 3 }, () => "ignore" as const);
  const child = spawn(process.execPath, [program, JSON.stringify(request)], {
    env: { ...process.env, TMPDIR: temporaryFolder },
    stdio: ["ignore", "pipe", "pipe", ...(descriptor === undefined ? [] : [...between, descriptor])],
  });
  if (descriptor !== undefined) closeSync(descriptor);
  let stdout = "";
  let stderr = "";
  const listeners = new Set<() => void>();
  child.stdout?.on("data", (data) => {
    stdout += String(data);
    for (const listener of listeners) listener();
  });
  child.stderr?.on("data", (data) => {
    stderr += String(data);
  });
  const finished = once(child, "close").then(
    ([code, signal]): Finished => ({ code, signal, stdout, stderr }),
  );
  return {
    pid: child.pid ?? 0,
    finished,
    says: async (text) => {
      let heard: (() => void) | undefined;
      const said = new Promise<void>((resolve) => {
        heard = () => {
          if (stdout.includes(text)) resolve();
        };
        listeners.add(heard);
        heard();
      });
      const ended = finished.then(() => {
        if (!stdout.includes(text)) throw new Error(`the runner ended early: ${stderr.slice(-500)}`);
      });
      await Promise.race([said, ended]);
      if (heard !== undefined) listeners.delete(heard);
    },
    kill: async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}
