import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import type { Command, Process, Sandbox } from "@ambit/core/plugin";

/** A sandbox that confines nothing: its processes are the host's. @param uid their user; default: the test's */
export function hostSandbox(workspace: string, uid?: number): Sandbox {
  const unused = () => Promise.reject(new Error("not part of this test"));
  return {
    workspace,
    home: workspace,
    confinement: "unconfined",
    evidence: {},
    spawn: async (command) => start(command, workspace, uid),
    writeFiles: unused,
    readFile: unused,
    expose: unused,
    close: async () => {},
  };
}

function start({ argv: [program, ...args], env, signal }: Command, workspace: string, uid?: number): Process {
  const child = spawn(program, args, { env, cwd: workspace, stdio: "pipe", uid });
  const exit = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.once("error", () => resolve({ code: null, signal: null }));
    child.once("close", (code, by) => resolve({ code, signal: by }));
  });
  const kill = async () => void child.kill("SIGKILL");
  signal?.addEventListener("abort", kill, { once: true });
  return {
    stdin: Writable.toWeb(child.stdin),
    stdout: Readable.toWeb(child.stdout),
    stderr: Readable.toWeb(child.stderr),
    evidence: {},
    exit,
    kill,
  };
}
