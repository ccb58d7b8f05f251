import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { appendFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command as CommandDto } from "@daytona/toolbox-api-client";
import { ApiError, badRequest } from "../../http/api-error.js";
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
}

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
    const id = randomUUID();
    const files = commandFiles(`${this.folder}/${id}`);
    await mkdir(files.folder, { recursive: true });
    await writeFile(files.log, "");
    await writeFile(files.command, request.command, { mode: 0o600 });
    this.#commands.set(id, { text: request.command, echoes: !request.suppressInputEcho, files });
    this.#shell.stdin?.write(commandScript(files, request.runAsync));
    return id;
  }

  /** Resolves with the exit code, which is polled every 50 ms. */
  async finished(id: string): Promise<number> {
    for (;;) {
      const exitCode = await this.#exitCode(this.#command(id));
      if (exitCode !== undefined) return exitCode;
      if (this.ended.aborted) throw badRequest("session cancelled");
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

  async input(id: string, data: string): Promise<void> {
    const command = this.#command(id);
    const finished = async () => {
      if (this.#shell.exitCode !== null || this.#shell.signalCode !== null)
        throw new ApiError(410, "session process has exited", "SESSION_ENDED");
      const exitCode = await this.#exitCode(command);
      if (exitCode === undefined) return;
      const message = `command has already completed with exit code ${exitCode}`;
      throw new ApiError(410, message, "COMMAND_ALREADY_COMPLETED");
    };
    const line = data.endsWith("\n") ? data : `${data}\n`;
    await writeInput(command.files.input, Buffer.from(line), finished);
    if (command.echoes) await appendFile(command.files.log, Buffer.concat([stdoutPrefix, Buffer.from(line)]));
  }

  /** Sends SIGTERM to the group and all descendants, and after the grace period SIGKILL. */
  async delete(): Promise<void> {
    const pid = this.#shell.pid;
    if (pid !== undefined) {
      signalGroup(pid, "SIGTERM");
      signalTree(pid, "SIGTERM");
      const deadline = performance.now() + this.graceMs;
      // Unlike an interactive bash, this one doesn't ignore SIGTERM: it exits when it has no descendants.
      while (performance.now() < deadline && descendants(pid).length > 0) await sleep(20);
      signalTree(pid, "SIGKILL");
      signalGroup(pid, "SIGKILL");
    }
    this.#ended.abort();
    await rm(this.folder, { recursive: true, force: true });
  }

  #command(id: string): Command {
    const command = this.#commands.get(id);
    if (!command) throw new ApiError(404, "command not found");
    return command;
  }

  async #exitCode({ files }: Command): Promise<number | undefined> {
    const text = await readFile(files.exitCode, "utf8").catch(() => "");
    return text.trim() === "" ? undefined : Number(text);
  }
}
