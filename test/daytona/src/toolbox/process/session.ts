import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command as CommandDto } from "@daytona/toolbox-api-client";
import { ApiError } from "../../http/api-error.js";
import { writeInput } from "../input.js";
import { type CommandFiles, commandFiles, commandScript, stdoutPrefix } from "./session-shell.js";
import { imageShell } from "./shell.js";
import { descendants, signalGroup, signalTree } from "./signals.js";

export interface CommandRequest {
  readonly command: string;
  readonly runAsync: boolean;
  readonly suppressInputEcho: boolean;
}

interface Command {
  readonly text: string;
  readonly echoes: boolean;
  readonly files: CommandFiles;
  /** Undefined until a client has asked for it: the daemon reads the file only then. */
  exitCode: number | undefined;
}

/** An error of a start, which the daemon wraps: its type is lost, and with it its status and code. */
export const failedToStart = (why: string) => new ApiError(500, `failed to execute command: ${why}`, "");

/** A bash that runs commands in sequence and keeps its state between them. */
export class Session {
  readonly #shell: ChildProcess;
  readonly #commands = new Map<string, Command>();
  readonly #ended = new AbortController();

  private constructor(
    readonly id: string,
    private readonly folder: string,
    private readonly graceMs: number,
    shell: ChildProcess,
  ) {
    this.#shell = shell;
  }

  static async open(id: string, folder: string, graceMs: number): Promise<Session> {
    await mkdir(folder, { recursive: true });
    const shell = spawn(imageShell(), [], { detached: true, stdio: ["pipe", "ignore", "ignore"] });
    // The shell has exited if a command called "exit".
    shell.stdin?.on("error", () => {});
    await new Promise<void>((resolve, reject) => shell.once("spawn", resolve).once("error", reject));
    return new Session(id, folder, graceMs, shell);
  }

  /** Aborted when the session is deleted. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  async start(request: CommandRequest): Promise<string> {
    if (this.#shell.exitCode !== null || this.#shell.signalCode !== null)
      throw failedToStart("bad request: failed to write command: write |1: broken pipe");
    const id = randomUUID();
    const files = commandFiles(`${this.folder}/${id}`);
    await mkdir(files.folder, { recursive: true });
    await writeFile(files.log, "");
    await writeFile(files.command, request.command, { mode: 0o600 });
    const echoes = !request.suppressInputEcho;
    this.#commands.set(id, { text: request.command, echoes, files, exitCode: undefined });
    this.#shell.stdin?.write(commandScript(files, request.runAsync));
    return id;
  }

  /** Resolves with the exit code, which is polled every 50 ms. */
  async finished(id: string): Promise<number> {
    for (;;) {
      const exitCode = await this.#exitCode(this.#command(id));
      if (exitCode !== undefined) return exitCode;
      if (this.ended.aborted) throw failedToStart("bad request: session cancelled");
      await sleep(50);
    }
  }

  async view(id: string): Promise<CommandDto> {
    const command = this.#command(id);
    const exitCode = await this.#exitCode(command);
    return { id, command: command.text, ...(exitCode === undefined ? {} : { exitCode }) };
  }

  async views(): Promise<CommandDto[]> {
    return await Promise.all([...this.#commands.keys()].map((id) => this.view(id)));
  }

  files(id: string): CommandFiles {
    return this.#command(id).files;
  }

  /**
   * 410 only after a client has asked for the command and got its exit code. Without that, an ended command is noticed
   * by its missing pipe: 500.
   *
   * @param signal aborts when the client has disconnected.
   */
  async input(id: string, data: string, signal: AbortSignal): Promise<void> {
    const command = this.#command(id);
    if (command.exitCode !== undefined)
      throw new ApiError(410, `command has already completed with exit code ${command.exitCode}`);
    const line = data.endsWith("\n") ? data : `${data}\n`;
    await writeInput(command.files.input, Buffer.from(line), AbortSignal.any([signal, this.ended]));
    if (command.echoes) await appendFile(command.files.log, Buffer.concat([stdoutPrefix, Buffer.from(line)]));
  }

  /**
   * Sends SIGTERM to the group and all descendants, and after the grace period SIGKILL to the group. With the shell the
   * group's leader ends, so the daemon finds no descendants any more: one that has left the group may stay, and stays
   * if it ignores SIGTERM (`apps/daemon/pkg/session/delete.go`).
   */
  async delete(): Promise<void> {
    const pid = this.#shell.pid;
    if (pid !== undefined) {
      signalGroup(pid, "SIGTERM");
      signalTree(pid, "SIGTERM");
      const deadline = performance.now() + this.graceMs;
      // Unlike an interactive bash, this one doesn't ignore SIGTERM: it exits when it has no descendants.
      while (performance.now() < deadline && descendants(pid).length > 0) await sleep(20);
      if (descendants(pid).length > 0) signalGroup(pid, "SIGKILL");
      this.#shell.kill("SIGKILL");
    }
    this.#ended.abort();
    await rm(this.folder, { recursive: true, force: true });
  }

  #command(id: string): Command {
    const command = this.#commands.get(id);
    if (!command) throw new ApiError(404, "command not found");
    return command;
  }

  async #exitCode(command: Command): Promise<number | undefined> {
    const text = await readFile(command.files.exitCode, "utf8").catch(() => "");
    if (text.trim() !== "") command.exitCode = Number(text);
    return command.exitCode;
  }
}
