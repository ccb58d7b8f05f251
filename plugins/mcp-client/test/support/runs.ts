import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import type { Boundary, Command, McpServer, Process, Sandbox, ToolSourceScope } from "@ambit/core/plugin";

export const open: Boundary = {
  network: { mode: "on", rules: [] },
  filesystem: { mode: "on", readable: [], writable: [], denied: [] },
  resources: {},
  secrets: "visible",
  enforcement: "strict",
};

export const closed: Boundary = { ...open, network: { mode: "off", rules: [] } };

export function httpServer(url: string, more: Partial<McpServer> = {}): McpServer {
  return { name: "remote", connection: { type: "http", url }, ...more };
}

/** A run's scope, and what it deferred. */
export class TestScope implements ToolSourceScope {
  readonly #controller = new AbortController();
  readonly #deferred: (() => void | Promise<void>)[] = [];
  readonly commands: Command[] = [];
  readonly children: ChildProcess[] = [];
  readonly exits: Promise<unknown>[] = [];
  readonly log = { debug() {}, info() {}, warn() {}, error() {} };

  constructor(readonly boundary: Boundary = open) {}

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  defer(close: () => void | Promise<void>): void {
    this.#deferred.push(close);
  }

  async close(): Promise<void> {
    for (const close of this.#deferred.splice(0).reverse()) await close();
  }

  /** Spawns on the host: the tests check which method is used. */
  get sandbox(): Sandbox {
    const unused = () => Promise.reject(new Error("not part of a tool source's job"));
    return {
      workspace: "/workspace",
      home: "/home/agent",
      confinement: "unconfined",
      evidence: {},
      spawn: (command) => this.#spawn(command),
      writeFiles: unused,
      readFile: unused,
      expose: unused,
      close: unused,
    };
  }

  async #spawn(command: Command): Promise<Process> {
    this.commands.push(command);
    const [program, ...args] = command.argv;
    const child = spawn(program, args, { env: { ...command.env }, stdio: "pipe" });
    this.children.push(child);
    await once(child, "spawn");
    const exit = once(child, "exit").then(([code, signal]) => ({ code, signal }));
    this.exits.push(exit);
    return {
      stdin: Writable.toWeb(child.stdin),
      stdout: Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
      stderr: Readable.toWeb(child.stderr) as ReadableStream<Uint8Array>,
      evidence: {},
      exit,
      kill: async () => {
        child.kill("SIGKILL");
      },
    };
  }
}
