import { SetupFailed } from "@ambit/core";
import { type Command, type Process, type Sandbox, TextEnd } from "@ambit/core/plugin";
import { searchPathOf } from "../programs.js";

/** What the run's reader learns of its setup: the data of an event `data` with the name `setup`. */
type SetupReport =
  /** Another run prepares the same environment. */
  | { readonly state: "waiting" }
  | { readonly state: "started"; readonly index: number; readonly command: string }
  /** Text of both streams, in whole lines where they aren't too long. */
  | { readonly state: "output"; readonly index: number; readonly text: string }
  | {
      readonly state: "ended";
      readonly index: number;
      /** Null for one that a signal ended. */
      readonly exitCode: number | null;
      readonly durationMs: number;
      /** Characters of output that weren't reported. */
      readonly omitted: number;
    };

export type ReportSetup = (report: SetupReport) => void;

/** Characters of all commands' output that are reported; what follows is counted. */
const maxReported = 262_144;
/** Characters of a line; a longer one is reported in pieces. */
const maxLine = 8_192;
/** Characters at the end of a failed command's output that its error has. */
const maxTail = 2_000;

/** One command of a setup. */
export interface SetupCommand {
  /** The command's name in errors. */
  readonly name: string;
  readonly argv: Command["argv"];
  /** The command in its event. */
  readonly shown: string;
  /** The folder in which it runs. Default: the workspace. */
  readonly folder?: string;
}

/** The commands of the request itself. Pure. */
export function requestedCommands(setup: readonly string[]): readonly SetupCommand[] {
  return setup.map((command, index) => ({
    name: `environment.setup[${index}]`,
    argv: ["/bin/sh", "-c", command],
    shown: command,
  }));
}

/**
 * Runs the setup commands in their sandbox, one after the other, with placeholders in place of credentials.
 * @throws SetupFailed for the first one that doesn't exit with 0; the signal's reason
 */
export async function runCommands(
  sandbox: Sandbox,
  commands: readonly SetupCommand[],
  env: Readonly<Record<string, string>>,
  report: ReportSetup,
  signal: AbortSignal,
): Promise<void> {
  let left = maxReported;
  for (const [index, { name, argv, shown, folder }] of commands.entries()) {
    report({ state: "started", index, command: shown });
    const startedAt = performance.now();
    const output = new Output(left, (text) => report({ state: "output", index, text }));
    const child = await sandbox.spawn({
      argv,
      ...(folder === undefined ? {} : { cwd: folder }),
      env: { PATH: searchPathOf(sandbox), ...env, ...sandbox.placeholders },
      role: "agent",
      signal,
    });
    const [{ code, signal: by }] = await Promise.all([child.exit, output.read(child)]);
    signal.throwIfAborted();
    left = output.left;
    const durationMs = Math.round(performance.now() - startedAt);
    report({ state: "ended", index, exitCode: code, durationMs, omitted: output.omitted });
    if (code !== 0) throw new SetupFailed(failureOf(name, code, by, output.tail));
  }
}

function failureOf(name: string, code: number | null, by: string | null, tail: string): string {
  const how = code === null ? `was ended by ${by ?? "a signal"}` : `exited with ${code}`;
  const last = tail === "" ? "It printed nothing." : `It printed at its end:\n${tail}`;
  return `${name} ${how}. ${last}`;
}

/** What a command prints, within limits. */
class Output {
  omitted = 0;
  readonly #end = new TextEnd(maxTail);

  constructor(
    public left: number,
    readonly send: (text: string) => void,
  ) {}

  async read({ stdin, stdout, stderr }: Process): Promise<void> {
    await Promise.all([stdin.close().catch(() => {}), this.#follow(stdout), this.#follow(stderr)]);
  }

  /** Whole lines, or words of a long one: a cut in the middle could leave a part of something that is redacted. */
  get tail(): string {
    const end = this.#end.lines || this.#end.words;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed.
    return end.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").trim();
  }

  async #follow(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    let line = "";
    try {
      for await (const part of stream) {
        line += decoder.decode(part, { stream: true });
        const end = line.length > maxLine ? line.length : line.lastIndexOf("\n") + 1;
        this.#take(line.slice(0, end));
        line = line.slice(end);
      }
    } catch {
      // The process was killed.
    }
    this.#take(line);
  }

  #take(text: string): void {
    if (text === "") return;
    this.#end.push(text);
    if (this.left < text.length) {
      // Nothing is reported from the first piece on that doesn't fit, so that no piece is missing in the middle.
      this.left = 0;
      this.omitted += text.length;
      return;
    }
    this.left -= text.length;
    this.send(text);
  }
}
