import { AtCapacity, CommandExecuted, callPure, pluginReturns } from "@ambit/core";
import { type JsonObject, projectOf, type RunRequest, type RunResult } from "@ambit/core/contract";
import type { Dialect, RequestedCommand } from "@ambit/core/plugin";
import { sizeOf } from "../json-values.js";
import { FairMap } from "../lifetime/fair-shares.js";

/** Milliseconds for which an ended command is remembered. */
const rememberedMs = 30 * 60_000;
/** Commands that are remembered or in progress. Further ones are refused, since forgetting one could repeat its effect. */
const maxCommands = { total: 20_000, perProject: 5_000 };
/** Characters of all results. A command whose result is dropped for others of its project stays remembered. */
const maxResultCharacters = 16 * 1024 * 1024;

type RememberedCommand =
  /** `result` is undefined if the run never begins to work. */
  | { readonly project: string | undefined; readonly result: Promise<RunResult | undefined> }
  /** `endedAt` in milliseconds since 1970. */
  | { readonly project: string | undefined; readonly endedAt: number };

/** The run that a command began. */
interface Execution {
  readonly ended: Promise<unknown>;
  /** Whether its agent was started: before that, nothing can have been done. */
  readonly stage: "starting" | "reusing" | "started";
  readonly result: RunResult | undefined;
}

/** A request, and the command that it carries out; undefined where it has none. */
interface Commanded {
  readonly request: RunRequest;
  readonly command?: RequestedCommand | undefined;
}

/** The command that a request carries out, in any spelling of these dialects. @throws PluginBrokeContract */
export function commandIn(dialects: readonly Dialect[], request: JsonObject): RequestedCommand | undefined {
  for (const dialect of dialects) {
    const command = callPure(dialect, "command", pluginReturns.command, () => dialect.command?.(request));
    if (command !== undefined) return command;
  }
  return undefined;
}

/** Begins at most one run for each command of a project. In this process; a store does the same for all. */
export class Commands {
  readonly #commands = new Map<string, RememberedCommand>();
  readonly #ofProjects = new Map<string | undefined, number>();
  readonly #results = new FairMap<RunResult>(maxResultCharacters);

  /** @throws CommandExecuted for one that was begun before; AtCapacity */
  require({ request, command }: Commanded): void {
    if (command === undefined) return;
    const key = keyOf({ request, command });
    this.#forget(Date.now());
    const earlier = this.#commands.get(key);
    if (earlier !== undefined) throw new CommandExecuted(command, this.#resultOf(key, earlier));
    const projectCommands = this.#ofProjects.get(projectOf(request)) ?? 0;
    if (projectCommands >= maxCommands.perProject)
      throw new AtCapacity(
        `${projectCommands} commands of this project are remembered already: try again later.`,
      );
    if (this.#commands.size >= maxCommands.total)
      throw new AtCapacity(`${maxCommands.total} commands are remembered already: try again later.`);
  }

  begun({ request, command }: Commanded, run: Execution): void {
    if (command === undefined) return;
    const key = keyOf({ request, command });
    const project = projectOf(request);
    this.#ofProjects.set(project, (this.#ofProjects.get(project) ?? 0) + 1);
    this.#commands.set(key, { project, result: run.ended.then(() => this.#ended(key, run)) });
  }

  /** Undefined if the run never began to work, or its result is no longer kept. */
  #resultOf(key: string, command: RememberedCommand): Promise<RunResult | undefined> {
    if ("result" in command) return command.result;
    return Promise.resolve(this.#results.get(command.project, key));
  }

  #ended(key: string, { stage, result }: Execution): RunResult | undefined {
    const command = this.#commands.get(key);
    if (command === undefined || result === undefined || (stage !== "started" && !result.ok)) {
      // Delivered again, it may still be executed.
      this.#delete(key);
      return result;
    }
    const remembered = { ...result, events: [] };
    const { project } = command;
    // In the order in which they ended, so that the oldest is the first.
    this.#commands.delete(key);
    this.#commands.set(key, { project, endedAt: Date.now() });
    this.#results.set(project, key, remembered, sizeOf(remembered));
    return remembered;
  }

  #forget(now: number): void {
    for (const [key, command] of this.#commands) {
      if (!("endedAt" in command)) continue;
      if (now - command.endedAt < rememberedMs) return;
      this.#delete(key);
    }
  }

  #delete(key: string): void {
    const command = this.#commands.get(key);
    if (command === undefined) return;
    this.#commands.delete(key);
    this.#results.delete(command.project, key);
    const left = (this.#ofProjects.get(command.project) ?? 1) - 1;
    if (left === 0) this.#ofProjects.delete(command.project);
    else this.#ofProjects.set(command.project, left);
  }
}

function keyOf({ request, command }: Commanded & { readonly command: RequestedCommand }): string {
  return JSON.stringify([projectOf(request) ?? null, command.id]);
}
