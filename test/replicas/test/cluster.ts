import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("../bin/ambit.mjs", import.meta.resolve("ambit")));
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** One `ambit serve` of several on one database. */
export class Replica {
  #child: ChildProcess | undefined;

  constructor(
    readonly url: string,
    readonly environment: Readonly<Record<string, string>>,
    readonly isSkewed: boolean,
    readonly configuration = "./replica.config.mjs",
  ) {}

  async start(): Promise<void> {
    const preload = this.isSkewed ? ["--import", here("./skewed-clock.mjs")] : [];
    const { port } = new URL(this.url);
    const args = [...preload, program, "serve", "--port", port, "--config", here(this.configuration)];
    const auth = this.environment.AMBIT_TOKEN === undefined ? { AMBIT_AUTH: "none" } : {};
    this.#child = spawn(process.execPath, args, {
      env: { PATH: process.env.PATH ?? "", AMBIT_LOG_LEVEL: "error", ...auth, ...this.environment },
      stdio: ["ignore", "ignore", process.env.AMBIT_SHOW_LOGS === undefined ? "ignore" : "inherit"],
    });
    for (;;) {
      if (this.#child.exitCode !== null) throw new Error(`the replica at ${this.url} left while it started`);
      const health = await fetch(`${this.url}/health`).catch(() => undefined);
      if (health?.ok === true) return;
      await sleep(20);
    }
  }

  signal(name: NodeJS.Signals): void {
    this.#child?.kill(name);
  }

  /** Kills it, like a crash. */
  async kill(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
  }

  /** Shuts it down with its runs. @returns its exit code. */
  async stop(): Promise<number | null> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return child?.exitCode ?? null;
    const gone = once(child, "exit");
    child.kill("SIGTERM");
    await gone;
    return child.exitCode;
  }
}
