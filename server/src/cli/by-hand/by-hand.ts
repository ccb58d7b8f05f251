import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { RunResult } from "@ambit/core";
import type { Ambit } from "../../open.js";
import { exitCodeOf } from "../exit-codes.js";
import { filesIn } from "./folder-files.js";
import type { Terminal } from "./questions.js";
import { type ByHandOptions, requestByHand, withoutCredentials } from "./request.js";
import { takeBack } from "./take-back.js";

export interface ByHandRunOptions extends ByHandOptions {
  /** `--apply`, `--no-apply`. Default: the terminal is asked. */
  readonly apply?: boolean;
  /** A file for the patch. */
  readonly patch?: string;
  /** A file for the request. */
  readonly save?: string;
}

/** Milliseconds that a question waits for its answer at the terminal. */
const waitMs = 86_400_000;

/** Names of options that only a run by hand has. */
const byHandOptions = [
  ...["agent", "folder", "network", "filesystem", "memory", "secrets", "sandbox", "model", "permissions"],
  ...["apply", "patch", "save"],
] as const;

/** Whether the command line describes the run itself, so that its argument is the prompt. Pure. */
export function isByHand(options: Readonly<Record<string, unknown>>): boolean {
  return byHandOptions.some((name) => options[name] !== undefined);
}

/** A run that the command line describes, with a copy of a folder. */
export class ByHand {
  readonly #folder: string | undefined;

  constructor(
    readonly prompt: string,
    readonly options: ByHandRunOptions,
    /** Undefined without a user to ask. */
    readonly terminal: Terminal | undefined,
  ) {
    this.#folder = options.folder === undefined ? undefined : resolve(options.folder);
  }

  /** @throws ConfigurationInvalid for a folder that can't be copied, or a file that can't be written */
  async request(environment: Readonly<Record<string, string | undefined>>): Promise<object> {
    const { prompt, options, terminal } = this;
    const { files, leftOut } =
      this.#folder === undefined ? { files: [], leftOut: [] } : await filesIn(this.#folder);
    if (leftOut.length > 0)
      process.stderr.write(`ambit: not copied, since they are links or no regular files: ${list(leftOut)}\n`);
    const request = requestByHand({
      ...{ prompt, options, files, environment },
      waitMs: terminal === undefined ? 0 : waitMs,
    });
    if (options.save !== undefined) {
      await writeFile(options.save, `${JSON.stringify(withoutCredentials(request), undefined, 2)}\n`);
      process.stderr.write(`ambit: the request is in ${options.save}, without its credentials\n`);
    }
    return request;
  }

  /** Shows what the run changed, and applies it. @returns the exit code */
  async end(
    { files }: Pick<Ambit, "files">,
    key: string,
    result: RunResult,
    print: (text: string) => Promise<void>,
  ): Promise<number> {
    const { terminal, options } = this;
    const outputs = result.receipt?.outputs;
    const kept = outputs === undefined ? undefined : await files.of(key);
    const code = exitCodeOf(result.failure);
    if (kept === undefined || outputs === undefined) return code;
    const { apply, patch } = options;
    const taken = await takeBack(kept, outputs, { folder: this.#folder, apply, patch, terminal, print });
    return code === 0 ? taken : code;
  }
}

function list(paths: readonly string[]): string {
  const shown = paths.slice(0, 5).map((path) => JSON.stringify(path));
  return paths.length > shown.length
    ? `${shown.join(", ")} and ${paths.length - shown.length} more`
    : shown.join(", ");
}
