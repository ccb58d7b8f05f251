import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import type { Command, ImageRootfs, Process, Sandbox } from "@ambit/core/plugin";

/** Spawns on the host, in a process group and with a scratch folder of its own: what a tool's code needs, unguarded. */
export class BareSandbox implements Sandbox {
  readonly workspace = process.cwd();
  readonly home = process.cwd();
  readonly evidence = {};
  readonly commands: Command[] = [];
  readonly processes: Process[] = [];
  readonly scratch: string[] = [];
  image?: ImageRootfs;

  /** @param confinement what it says of itself; nothing is confined here. */
  constructor(readonly confinement: Sandbox["confinement"] = "unconfined") {}

  async spawn(command: Command): Promise<Process> {
    this.commands.push(command);
    const scratch = await mkdtemp(join(tmpdir(), "ambit-code-test-"));
    this.scratch.push(scratch);
    const [program, ...args] = command.argv;
    const child = spawn(program, args, {
      env: { ...command.env, HOME: scratch, TMPDIR: scratch },
      cwd: scratch,
      detached: true,
      stdio: "pipe",
    });
    await once(child, "spawn");
    const kill = async () => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
      } catch {
        // The whole group has ended by itself.
      }
    };
    command.signal?.addEventListener("abort", () => void kill(), { once: true });
    if (command.signal?.aborted) await kill();
    const exit = once(child, "close").then(async ([code, signal]) => {
      await kill();
      await rm(scratch, { recursive: true, force: true });
      return { code, signal };
    });
    const started: Process = {
      stdin: Writable.toWeb(child.stdin),
      stdout: Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
      stderr: Readable.toWeb(child.stderr) as ReadableStream<Uint8Array>,
      evidence: {},
      exit,
      kill,
    };
    this.processes.push(started);
    return started;
  }

  writeFiles = () => Promise.reject(new Error("not part of a code tool's job"));
  readFile = () => Promise.reject(new Error("not part of a code tool's job"));
  expose = () => Promise.reject(new Error("not part of a code tool's job"));
  close = () => Promise.resolve();
}
