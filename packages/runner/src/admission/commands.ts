import { AtCapacity, CommandExecuted } from "@ambit/core";
import { projectOf, type RunRequest, type RunResult } from "@ambit/core/contract";
import { sizeOf } from "../lifetime/memory/size.js";

/** Milliseconds for which an ended command is remembered. */
const rememberedMs = 30 * 60_000;
/** Commands that are remembered or in progress. Further ones are refused, since forgetting one could repeat its effect. */
const maxCommands = { total: 20_000, perProject: 5_000 };
/** Characters of their results. Beyond it, the oldest results are dropped; their commands stay remembered. */
const maxResultCharacters = 16 * 1024 * 1024;

interface Command {
  readonly project: string | undefined;
  /** The result that repeats get; undefined if the run never began to work, or its result is no longer kept. */
  readonly result: Promise<RunResult | undefined>;
  ended?: { readonly at: number; readonly size: number };
}

/** The run that a command began. */
interface Execution {
  readonly ended: Promise<unknown>;
  /** Whether its agent was started: before that, nothing can have been done. */
  readonly stage: "starting" | "reusing" | "started";
  readonly result: RunResult | undefined;
}

/** Begins at most one run for each `controlCommandId` of a project. In this process; a store does the same for all. */
export class Commands {
  readonly #commands = new Map<string, Command>();
  readonly #ofProjects = new Map<string | undefined, number>();
  #characters = 0;

  /** @throws CommandExecuted for one that was begun before; AtCapacity */
  require(request: RunRequest): void {
    const key = keyOf(request);
    if (key === undefined) return;
    this.#forget(Date.now());
    const known = this.#commands.get(key);
    if (known !== undefined) throw new CommandExecuted(request.controlCommandId ?? "", known.result);
    const own = this.#ofProjects.get(projectOf(request)) ?? 0;
    if (own >= maxCommands.perProject)
      throw new AtCapacity(`${own} commands of this project are remembered already: try again later.`);
    if (this.#commands.size >= maxCommands.total)
      throw new AtCapacity(`${maxCommands.total} commands are remembered already: try again later.`);
  }

  begun(request: RunRequest, run: Execution): void {
    const key = keyOf(request);
    if (key === undefined) return;
    const project = projectOf(request);
    this.#ofProjects.set(project, (this.#ofProjects.get(project) ?? 0) + 1);
    this.#commands.set(key, { project, result: run.ended.then(() => this.#ended(key, run)) });
  }

  #ended(key: string, { stage, result }: Execution): RunResult | undefined {
    const command = this.#commands.get(key);
    if (command === undefined || result === undefined || (stage !== "started" && !result.ok)) {
      // Delivered again, it may still be executed.
      this.#delete(key);
      return result;
    }
    const kept = { ...result, events: [] };
    const size = sizeOf(kept);
    // In the order in which they ended, so that the oldest is the first.
    this.#commands.delete(key);
    this.#commands.set(key, { ...command, ended: { at: Date.now(), size } });
    this.#characters += size;
    this.#shrink();
    return kept;
  }

  #shrink(): void {
    for (const [key, { project, ended }] of this.#commands) {
      if (this.#characters <= maxResultCharacters) return;
      if (ended === undefined) continue;
      this.#characters -= ended.size;
      this.#commands.set(key, {
        project,
        result: Promise.resolve(undefined),
        ended: { at: ended.at, size: 0 },
      });
    }
  }

  #forget(now: number): void {
    for (const [key, { ended }] of this.#commands) {
      if (ended === undefined) continue;
      if (now - ended.at < rememberedMs) return;
      this.#characters -= ended.size;
      this.#delete(key);
    }
  }

  #delete(key: string): void {
    const command = this.#commands.get(key);
    if (command === undefined) return;
    this.#commands.delete(key);
    const left = (this.#ofProjects.get(command.project) ?? 1) - 1;
    if (left === 0) this.#ofProjects.delete(command.project);
    else this.#ofProjects.set(command.project, left);
  }
}

function keyOf(request: RunRequest): string | undefined {
  const { controlCommandId } = request;
  return controlCommandId === undefined
    ? undefined
    : JSON.stringify([projectOf(request) ?? null, controlCommandId]);
}
