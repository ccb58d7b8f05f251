import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import { type Command, type FileEntry, type Process, type Sandbox, SandboxFailed } from "@ambit/core/plugin";

/** An unconfined sandbox: real processes in separate groups, in temporary folders. */
export class ProcessSandbox implements Sandbox {
  readonly confinement = "unconfined";
  readonly evidence = {};
  readonly workspace: string;
  readonly home: string;
  readonly spawned: Process[] = [];
  readonly commands: Command[] = [];

  #read = 0;

  private constructor(readonly folder: string) {
    this.workspace = join(folder, "workspace");
    this.home = join(folder, "home");
  }

  static async open(): Promise<ProcessSandbox> {
    const sandbox = new ProcessSandbox(await mkdtemp(join(tmpdir(), "ambit-acp-test-")));
    await Promise.all([mkdir(sandbox.workspace), mkdir(sandbox.home)]);
    return sandbox;
  }

  async spawn(command: Command): Promise<Process> {
    const [program, ...args] = command.argv;
    const child = spawn(program, args, {
      cwd: command.cwd ?? this.workspace,
      env: { ...command.env },
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
    });
    await once(child, "spawn");
    const exit = once(child, "exit").then(([code, signal]) => ({ code, signal }));
    const { pid } = child;
    const process_: Process = {
      stdin: Writable.toWeb(child.stdin),
      stdout: byteStream(child.stdout, (count) => {
        this.#read += count;
      }),
      stderr: byteStream(child.stderr),
      evidence: { pid: pid ?? 0 },
      exit,
      kill: async (signal = "SIGKILL") => {
        try {
          if (pid !== undefined) process.kill(-pid, signal);
        } catch (error) {
          if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
        }
      },
    };
    this.spawned.push(process_);
    this.commands.push(command);
    return process_;
  }

  /** Bytes of output that were read, once no more are. */
  async settledOutput(): Promise<number> {
    for (let before = -1; before !== this.#read; ) {
      before = this.#read;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return this.#read;
  }

  /** Commands of the processes that have `home` among their variables: all that descends from what was spawned. */
  async processes(home: string): Promise<string[]> {
    const ids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
    const found = await Promise.all(
      ids.map(async (id) => {
        const variables = await readFile(`/proc/${id}/environ`, "utf8").catch(() => "");
        if (!variables.includes(`HOME=${home}\0`)) return [];
        return [(await readFile(`/proc/${id}/cmdline`, "utf8").catch(() => "")).replaceAll("\0", " ")];
      }),
    );
    return found.flat();
  }

  async writeFiles(files: readonly FileEntry[]): Promise<void> {
    for (const { path, content, executable } of files) {
      if (!path.startsWith(`${this.folder}/`)) throw new SandboxFailed(`${path} is outside the folder`);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content, { mode: executable === true ? 0o755 : 0o644 });
    }
  }

  readFile(path: string): Promise<Uint8Array> {
    return readFile(path);
  }

  expose(): Promise<never> {
    return Promise.reject(new SandboxFailed("the test's sandbox exposes nothing"));
  }

  async close(): Promise<void> {
    for (const process_ of this.spawned) {
      await process_.kill();
      await process_.exit;
    }
    await rm(this.folder, { recursive: true, force: true });
  }
}

/** `Readable.toWeb` is typed with any chunk. */
function byteStream(stream: Readable, seen: (count: number) => void = () => {}): ReadableStream<Uint8Array> {
  return Readable.toWeb(stream).pipeThrough(
    new TransformStream<unknown, Uint8Array>({
      transform: (chunk, controller) => {
        if (!(chunk instanceof Uint8Array)) return;
        seen(chunk.length);
        controller.enqueue(chunk);
      },
    }),
  );
}
