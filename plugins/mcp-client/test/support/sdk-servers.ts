import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const sdkServer = fileURLToPath(new URL("sdk-server.mjs", import.meta.url));
export const versions = ["2025-11-25", "2026-07-28"] as const;
export type Version = (typeof versions)[number];

/** What a server's processes have executed, one after another. */
export class Executions implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "ambit-mcp-"));
  readonly file = join(this.#folder, "executed");

  constructor() {
    writeFileSync(this.file, "");
  }

  get names(): readonly string[] {
    return readFileSync(this.file, "utf8").split("\n").slice(0, -1);
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }
}

/** A server of the official SDK over HTTP, which can be killed and started again on its port. */
export class SdkHttpServer implements AsyncDisposable {
  readonly executions = new Executions();
  #process: ChildProcess | undefined;
  port = 0;

  constructor(
    readonly version: Version,
    readonly unknownSession: "400" | "404" = "404",
  ) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}/mcp`;
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [sdkServer, "http", String(this.port), this.version], {
      env: { EXECUTED: this.executions.file, UNKNOWN_SESSION: this.unknownSession },
      stdio: ["ignore", "pipe", "ignore"],
    });
    this.#process = child;
    const [line] = await once(createInterface({ input: child.stdout }), "line");
    this.port = Number(line);
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, "exit");
    child.kill("SIGKILL");
    await exit;
  }

  /** The server forgets its sessions. @returns how many it had */
  async expire(): Promise<number> {
    return Number(await (await fetch(new URL("/expire", this.url))).text());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    this.executions[Symbol.dispose]();
  }
}
