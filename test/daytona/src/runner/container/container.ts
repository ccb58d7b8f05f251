import { spawn } from "node:child_process";
import { mkdir, rm } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { dirname } from "node:path";
import { Duplex, type Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { toolboxPort } from "../../toolbox/port.js";
import { sandboxAddress } from "../addresses.js";
import type { SandboxSpec } from "../messages.js";
import { command, options } from "./bubblewrap.js";
import type { Cgroups } from "./cgroups.js";
import { fillRoot } from "./image.js";
import { join } from "./join.js";
import { kill } from "./kill.js";
import { run } from "./run.js";

/** The numbers of the child's pipes, in addition to stdio. */
const argsPipe = 3;
const infoPipe = 4;
const blockPipe = 5;

/** Where a runner keeps the files of a snapshot that was made from a sandbox. */
export const snapshotFolder = (folder: string, id: string) => `${folder}/snapshots/${id}`;

interface Running {
  readonly pid: number;
  /** Resolves when it has ended and its network is taken down. */
  readonly over: Promise<void>;
}

/** One sandbox's container. Its root outlives stop and start, its processes don't. */
export class Container {
  #running: Running | undefined;
  #socket: Server | undefined;

  private constructor(
    readonly spec: SandboxSpec,
    private readonly root: string,
    private readonly socketPath: string,
    private readonly cgroups: Cgroups,
  ) {}

  static async create(spec: SandboxSpec, folder: string, cgroups: Cgroups): Promise<Container> {
    const root = `${folder}/${spec.index}`;
    const socketPath = `${folder}/${spec.index}.sock`;
    await mkdir(root);
    // In this process's own mount namespace, which ends with the runner.
    await run("mount", ["-t", "tmpfs", "-o", `size=${spec.diskBytes},mode=755`, "tmpfs", root]);
    const container = new Container(spec, root, socketPath, cgroups);
    if (spec.from !== undefined)
      await run("cp", ["--archive", `${snapshotFolder(folder, spec.from)}/.`, root]);
    await fillRoot(root, spec);
    await container.#listen();
    return container;
  }

  /** Its first process's pid, on this machine. Undefined while it is stopped. */
  get pid(): number | undefined {
    return this.#running?.pid;
  }

  /**
   * Starts the daemon. `connect` sets up the network when the namespace exists, before anything runs in it;
   * `exited` is called when the container ends for any reason.
   */
  async start(
    env: Readonly<Record<string, string>>,
    connectNetwork: (pid: number) => Promise<void>,
    exited: () => Promise<void>,
    tries = 3,
  ): Promise<number> {
    const child = spawn(
      "bwrap",
      [
        ...["--args", String(argsPipe), "--info-fd", String(infoPipe), "--block-fd", String(blockPipe), "--"],
        ...command(this.spec),
      ],
      { env: {}, stdio: ["ignore", "pipe", "pipe", "pipe", "pipe", "pipe"] },
    );
    const said: Buffer[] = [];
    child.stderr?.on("data", (chunk: Buffer) => said.push(chunk));
    const ended = new Promise<void>((resolve) =>
      child.once("exit", () => resolve()).once("error", () => resolve()),
    );
    const failed = new Promise<never>((_, reject) => {
      child.once("error", reject);
      child.once("close", () =>
        reject(new Error(`the container ended: ${Buffer.concat(said).toString("utf8").trim()}`)),
      );
    });
    // Unused when the container runs.
    failed.catch(() => {});

    // A failed bwrap closes all of these. Its exit code and output have the reason.
    for (const stream of child.stdio) stream?.on("error", () => {});
    let pid: number | undefined;
    try {
      const pipe = (number: number) => duplex(child.stdio[number]);
      const args = options(this.spec, this.root, env).map((option) => `${option}\0`);
      pipe(argsPipe).end(args.join(""));
      pid = await Promise.race([childPid(pipe(infoPipe)), failed]);
      const { cpu, memoryBytes } = this.spec;
      await this.cgroups.place(this.spec.id, [child.pid ?? pid, pid], { cpu, memoryBytes });
      await connectNetwork(pid);
      pipe(blockPipe).end("go");
      if (this.spec.daemon === undefined) await Promise.race([firstData(child.stdout), failed]);
      child.stdout?.resume();
      if (this.spec.daemon !== undefined) {
        // Its output isn't known, but whether it listens is.
        const waiting = new AbortController();
        const listens = toolboxListens(sandboxAddress(this.spec.index), waiting.signal);
        await Promise.race([listens, failed]).finally(() => waiting.abort());
      }
      const over = ended.then(async () => {
        this.#running = undefined;
        await exited();
      });
      // Awaited by the code that stops it; if it exits on its own, nothing awaits it.
      over.catch(() => {});
      this.#running = { pid, over };
      return pid;
    } catch (error) {
      // Its child would wait for it indefinitely.
      if (pid !== undefined) kill(pid);
      child.kill("SIGKILL");
      await ended;
      // bwrap's output explains more than the failures that follow from it.
      const text = Buffer.concat(said).toString("utf8").trim();
      // On a busy machine bubblewrap sometimes gets no reply about its loopback interface, and reports ECHILD.
      if (text.includes("loopback: Failed RTM_") && tries > 1)
        return await this.start(env, connectNetwork, exited, tries - 1);
      await exited();
      throw text === "" ? error : new Error(`the container didn't start: ${text}`);
    }
  }

  /** Kills all of its processes. */
  async stop(): Promise<void> {
    const running = this.#running;
    if (running) {
      // When the first process of a pid namespace ends, the kernel ends all others in it.
      kill(running.pid);
      await running.over;
    }
    await this.cgroups.remove(this.spec.id);
  }

  /** Copies its files. What is mounted inside isn't among them (`apps/runner/pkg/docker/snapshot_sandbox.go`). */
  async copyTo(folder: string): Promise<void> {
    await mkdir(dirname(folder), { recursive: true, mode: 0o700 });
    await run("cp", ["--archive", "--one-file-system", this.root, folder]);
  }

  async destroy(): Promise<void> {
    await this.stop();
    const socket = this.#socket;
    if (socket) await new Promise<void>((resolve) => socket.close(() => resolve()));
    await run("umount", ["--lazy", this.root]);
    await rm(this.root, { recursive: true, force: true });
  }

  /** For the control plane, which isn't on this network: a socket of the machine, connected to the daemon. */
  async #listen(): Promise<void> {
    const server = createServer({ allowHalfOpen: true }, (outside) => {
      const inside = connect({
        host: sandboxAddress(this.spec.index),
        port: toolboxPort,
        allowHalfOpen: true,
      });
      join(outside, inside);
    });
    this.#socket = server;
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject).listen(this.socketPath, resolve);
    });
  }
}

function duplex(stream: unknown): Duplex {
  if (!(stream instanceof Duplex)) throw new Error("the pipe to bwrap is missing");
  return stream;
}

/** Reads to the end: bwrap writes in pieces, and dies if one isn't read. */
async function childPid(info: Readable): Promise<number> {
  let text = "";
  for await (const chunk of info) text += chunk;
  const pid = /"child-pid":\s*(\d+)/.exec(text)?.[1];
  if (pid === undefined) throw new Error(`bwrap named no process: ${text}`);
  return Number(pid);
}

function firstData(stream: Readable | null): Promise<void> {
  return new Promise((resolve) => stream?.once("data", () => resolve()));
}

/** Polls as Daytona's runner does, until there is a response (`apps/runner/pkg/docker/daemon.go`). */
async function toolboxListens(host: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const connected = await new Promise<boolean>((resolve) => {
      const socket = connect({ host, port: toolboxPort });
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
      socket.once("close", () => resolve(false));
      socket.once("connect", () => socket.destroy());
    });
    if (connected) return;
    await sleep(5);
  }
}
