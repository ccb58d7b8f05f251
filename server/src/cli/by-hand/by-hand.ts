import { open, realpath, rm, stat, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { type AgentEventOf, messageOf, type RunResult } from "@ambit/core";
import type { Message } from "@ambit/core/contract";
import { codeOf } from "@ambit/core/plugin";
import type { LocalEntry } from "@ambit/workspace";
import type { Overrides } from "../../configuration/load.js";
import { ConfigurationInvalid } from "../../configuration/problems.js";
import { printableLine } from "../../logging/printable.js";
import type { Ambit } from "../../open.js";
import type { PrinterOptions } from "../display/record-printer.js";
import { exitCodeOf, exitCodes } from "../exit-codes.js";
import type { Terminal } from "./ask/terminal.js";
import { Conversation } from "./conversation.js";
import { type FolderFile, filesIn } from "./folder-files.js";
import { includedFiles } from "./ignored-files.js";
import { endLines, InPlace, ownFolder } from "./in-place/in-place.js";
import { keyVariables } from "./model-connection.js";
import { type CopiedRepository, copiedRepository } from "./repository.js";
import { type ByHandOptions, requestByHand, withoutCredentials } from "./request.js";
import { setupInputsOf } from "./setup-inputs.js";
import { skillFrom } from "./skill-folder.js";
import { showChanges, takeBack } from "./take-back.js";

export interface ByHandRunOptions extends ByHandOptions {
  /** `--apply`, `--no-apply`. Default: the terminal is asked. */
  readonly apply?: boolean;
  /** A file for the patch. */
  readonly patch?: string;
  /** A file for the request. */
  readonly save?: string;
  /** Whether the folder itself is the workspace. */
  readonly inPlace?: boolean;
  /** Patterns of ignored files that come along. */
  readonly include?: readonly string[];
  /** Continues the conversation of the folder's last run. */
  readonly resume?: boolean;
}

/** Milliseconds that a question waits for its answer at the terminal. */
const waitMs = 86_400_000;
/** Tools that a message names. */
const maxNamed = 10;

/** Options of `ambit run` that also go together with a request's file. */
const optionsOfAnyRun: readonly string[] = ["config", "stream", "json", "timeline", "receipt"] satisfies (
  | keyof PrinterOptions
  | keyof Overrides
)[];

/** Whether the command line describes the run itself, so that its argument is the prompt. Pure. */
export function isByHand(options: Readonly<Record<string, unknown>>): boolean {
  return Object.entries(options).some(
    ([name, value]) => value !== undefined && !optionsOfAnyRun.includes(name),
  );
}

/** A run that the command line describes, with a copy of a folder. */
export class ByHand {
  readonly #folder: string | undefined;
  #earlier: readonly Message[] = [];
  /** Tools whose calls needed an answer. */
  readonly #asked = new Set<string>();
  #local: readonly LocalEntry[] = [];
  #repository: CopiedRepository | undefined;
  #inPlace: InPlace | undefined;

  constructor(
    readonly prompt: string,
    readonly options: ByHandRunOptions,
    /** Undefined without a user to ask. */
    readonly terminal: Terminal | undefined,
  ) {
    this.#folder = options.folder === undefined ? undefined : resolve(options.folder);
  }

  /** @throws ConfigurationInvalid for a folder that can't be copied, an unusable skill or file, or nothing to resume */
  async request(environment: Readonly<Record<string, string | undefined>>): Promise<object> {
    const { prompt, options, terminal } = this;
    if (this.#folder === undefined) requireFolder(options);
    if (options.patch !== undefined) await requireWritable("--patch", options.patch);
    requireSetup(options);
    const guarded = await this.#inPlace?.prepare();
    const files = this.#folder === undefined || guarded !== undefined ? [] : await this.#copy(this.#folder);
    if (options.resume === true)
      this.#earlier = await this.#conversation("--resume").then((one) => one.read());
    const skills = await Promise.all((options.skill ?? []).map(skillFrom));
    const request = requestByHand({
      prompt,
      options,
      earlier: this.#earlier,
      files,
      setupInputs: this.#setupInputs(files),
      gitUser: this.#repository?.user,
      guarded,
      skills,
      environment,
      waitMs: terminal === undefined ? 0 : waitMs,
    });
    if (options.save !== undefined) {
      const text = `${JSON.stringify(withoutCredentials(request), undefined, 2)}\n`;
      // It has the folder's files.
      await writeOwn("--save", options.save, text);
      process.stderr.write(
        `ambit: the request is in ${options.save}, without its credentials and the queries of its URLs\n`,
      );
    }
    return request;
  }

  /**
   * The folder that is the workspace itself, without links in its path. Undefined: the run has a copy, or no folder.
   * @throws ConfigurationInvalid for options that don't go together with it, or a folder that isn't there
   */
  async workspaceFolder(): Promise<string | undefined> {
    const { options } = this;
    if (options.inPlace !== true) return undefined;
    const path = this.#folder;
    if (path === undefined)
      throw new ConfigurationInvalid("--in-place", ["needs --folder, the folder that the run works in"]);
    const conflicting = [
      ["--include", options.include !== undefined, "everything in the folder is there"],
      ["--setup", options.setup !== undefined, "run its command in the folder yourself"],
      ["--apply", options.apply === true, "changes are made in the folder"],
      ["--no-apply", options.apply === false, "changes are made in the folder"],
      ["--save", options.save !== undefined, "a server has no such folder"],
      [
        "--filesystem",
        !["workspace", "readonly", undefined].includes(options.filesystem),
        'the folder is the workspace: "workspace" or "readonly"',
      ],
    ] as const;
    for (const [option, isGiven, why] of conflicting)
      if (isGiven) throw new ConfigurationInvalid(option, [`doesn't go together with --in-place: ${why}`]);
    const folder = await ownFolder(path, {
      option: "--in-place",
      command: "ambit run …",
      instead: "leave --in-place out, to work on a copy",
    });
    this.#inPlace = new InPlace(folder);
    return folder;
  }

  /** The run is admitted, and begins. */
  async begin(): Promise<void> {
    await this.#inPlace?.begin();
  }

  /** What comes into the workspace besides the request's files. */
  get local(): readonly LocalEntry[] {
    return this.#local;
  }

  /** Removes what it keeps on disk. */
  async close(): Promise<void> {
    const ended = await this.#inPlace?.ended();
    if (ended !== undefined) process.stderr.write(endLines(ended));
    await this.#repository?.close();
  }

  /** Reads the folder, and says what of it stays behind. */
  async #copy(folder: string): Promise<readonly FolderFile[]> {
    const { include = [] } = this.options;
    const { files, links, leftOut, ignored } = await filesIn(folder);
    const { entries, left } =
      ignored === undefined ? { entries: [], left: [] } : await includedFiles(folder, ignored, include);
    const repository = ignored === undefined ? undefined : await copiedRepository(folder);
    this.#repository = typeof repository === "string" ? undefined : repository;
    this.#local = [
      ...links.map((link) => ({ kind: "link", ...link }) as const),
      ...entries,
      ...(this.#repository?.entries ?? []),
    ];
    const said = [
      ...(left.length === 0 ? [] : [`${list(left)} (ignored by git; --include takes them along)`]),
      ...(leftOut.length === 0 ? [] : [`${list(leftOut)} (no regular file, or behind a link)`]),
      ...(typeof repository === "string" ? [`.git (${repository})`] : []),
    ];
    if (said.length > 0) process.stderr.write(`ambit: left out: ${said.join(", ")}\n`);
    return files;
  }

  /** Says what a setup is kept for. @throws ConfigurationInvalid for globs that name no file */
  #setupInputs(files: readonly FolderFile[]): readonly string[] | undefined {
    const { setup, setupInputs } = this.options;
    if (setup === undefined) return undefined;
    const paths = files.map(({ path }) => path);
    const inputs = setupInputsOf(paths, setup, setupInputs);
    if (inputs === undefined) return undefined;
    const named = list(inputs.paths);
    process.stderr.write(`ambit: the setup is kept until ${named} or a command of it changes\n`);
    return inputs.globs;
  }

  /** What the command line does about a failure, where its own words don't say it. Undefined: nothing more. Pure. */
  fixFor(failure: RunResult["failure"]): string | undefined {
    const { agent, model, network = "off", setupNetwork = network } = this.options;
    if (failure?.code === "setup_failed" && setupNetwork === "off")
      return "the setup had no network: where it needs one, --setup-network names the hosts that it may reach, such as that of your packages";
    if (failure?.issues?.some(({ path }) => path === "modelConnection.credentials") !== true)
      return undefined;
    const names = keyVariables(agent, model).join(", ");
    return `the model's key is taken from the environment: set ${names}${names.includes(",") ? ", one of these" : ""}`;
  }

  /** Remembers what a run asked, to name it if that pauses the run. */
  asked({ kind, payload }: AgentEventOf<"interaction_request">): void {
    if (kind === "user_approval" && payload?.toolName !== undefined && this.#asked.size < maxNamed)
      this.#asked.add(payload.toolName);
  }

  /** Shows what the run changed, and applies it, unless `signal` aborts before. @returns the exit code */
  async end(
    { files }: Pick<Ambit, "files">,
    key: string,
    result: RunResult,
    print: (text: string) => Promise<void>,
    signal?: AbortSignal,
  ): Promise<number> {
    const { terminal, options } = this;
    const outputs = result.receipt?.outputs;
    const keptOutputs = outputs === undefined ? undefined : await files.of(key);
    const code = this.#codeOf(result);
    const fix = this.fixFor(result.failure);
    if (fix !== undefined) process.stderr.write(`ambit: ${fix}\n`);
    if (keptOutputs === undefined || outputs === undefined) return code;
    const { apply, patch } = options;
    if (this.#inPlace !== undefined) {
      await showChanges(keptOutputs, outputs, { patch, terminal, print, signal });
      const ended = await this.#inPlace.ended();
      if (ended !== undefined) await print(endLines(ended));
      return code;
    }
    // It may be named by a link; below it, none is followed.
    const folder = this.#folder === undefined ? undefined : await realpath(this.#folder);
    // What was cut off, nothing applies unasked.
    const isCutOff = result.failure?.code === "run_cancelled" || result.stopReason === "cancelled";
    const wanted = isCutOff && apply === true ? (terminal === undefined ? false : undefined) : apply;
    const taken = await takeBack(keptOutputs, outputs, {
      folder,
      apply: wanted,
      patch,
      terminal,
      print,
      signal,
    });
    if (isCutOff && wanted === false && apply === true) await print("interrupted: nothing was applied\n");
    return code === 0 ? taken : code;
  }

  #codeOf({ failure, stopReason }: RunResult): number {
    if (failure !== undefined || stopReason !== "paused") return exitCodeOf(failure);
    const calls = [...this.#asked].map((name) => printableLine(name)).join(", ");
    const reason = calls === "" ? "it has a question" : `it needs permission to call ${calls}`;
    const fix = "run it at a terminal, or with --permissions allow";
    process.stderr.write(`ambit: the run paused: ${reason}, and there is no terminal to ask at: ${fix}\n`);
    return exitCodes.paused;
  }

  /** Keeps what was said for `--resume`, however the run ended: its prompt at least. */
  async remember({ messages = [] }: Pick<RunResult, "messages">): Promise<void> {
    if (this.#folder === undefined) return;
    const said: Message = { role: "user", content: this.prompt };
    try {
      await (await this.#conversation()).keep([...this.#earlier, said, ...messages]);
    } catch (error) {
      process.stderr.write(`ambit: --resume won't continue this run: ${messageOf(error)}\n`);
    }
  }

  #conversation(option = "--folder"): Promise<Conversation> {
    if (this.#folder === undefined)
      throw new ConfigurationInvalid(option, ["needs --folder, whose last run it continues"]);
    return Conversation.of(this.#folder);
  }
}

/** @throws ConfigurationInvalid for what would have no effect without a folder */
function requireFolder({ apply, patch, include }: ByHandRunOptions): void {
  if (include !== undefined)
    throw new ConfigurationInvalid("--include", ["needs --folder, whose ignored files it takes along"]);
  const option = patch !== undefined ? "--patch" : apply === true ? "--apply" : undefined;
  if (option !== undefined)
    throw new ConfigurationInvalid(option, ["needs --folder, whose files the run's changes are for"]);
}

function requireSetup({ setup, setupNetwork, setupInputs }: ByHandRunOptions): void {
  if (setup !== undefined) return;
  const option =
    setupNetwork !== undefined ? "--setup-network" : setupInputs === undefined ? undefined : "--setup-inputs";
  if (option !== undefined)
    throw new ConfigurationInvalid(option, ["has no effect without --setup: leave it out"]);
}

function list(paths: readonly string[]): string {
  const shown = paths.slice(0, 5).map((path) => printableLine(path));
  return paths.length > shown.length
    ? `${shown.join(", ")} and ${paths.length - shown.length} more`
    : shown.join(", ");
}

/**
 * Before a run, whose result would be lost if its file turned out to be none.
 * @throws ConfigurationInvalid for a file that can't be written
 */
async function requireWritable(option: string, file: string): Promise<void> {
  const stats = await stat(file).catch(() => undefined);
  // Opening a pipe would wait for its reader.
  if (stats !== undefined && !stats.isFile() && !stats.isDirectory()) return;
  try {
    await (await open(file, "a", 0o600)).close();
    if (stats === undefined) await rm(file);
  } catch (cause) {
    throw unwritable(option, file, cause);
  }
}

/** Only its user can read the file. @throws ConfigurationInvalid for a file that can't be written */
async function writeOwn(option: string, file: string, text: string): Promise<void> {
  try {
    await writeFile(file, text, { mode: 0o600 });
  } catch (cause) {
    throw unwritable(option, file, cause);
  }
}

function unwritable(option: string, file: string, cause: unknown): ConfigurationInvalid {
  const reason = `${file} can't be written (${codeOf(cause) ?? String(cause)})`;
  return new ConfigurationInvalid(option, [`${reason}: name a file in a folder that exists and is yours`], {
    cause,
  });
}
