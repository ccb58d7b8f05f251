import type { Command, Exit, Sandbox } from "@ambit/core/plugin";
import { interpreter, python, searchPath } from "./python.js";

/** Longer than any program of the kit takes on a busy machine: one that reaches it hangs. */
const programMs = 60_000;
/** Characters that are kept of a program's output. Programs print far less. */
const maxOutputCharacters = 1_000_000;

export interface ProgramOptions extends Pick<Command, "role" | "cwd"> {
  readonly env?: Readonly<Record<string, string>>;
}

export interface Finished extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

/** The command that runs a program of the kit with its parameters. */
export function commandOf(body: string, parameters: object, options: ProgramOptions = {}): Command {
  const { env = {}, ...rest } = options;
  return {
    argv: [interpreter, "-I", "-S", "-c", python(body), JSON.stringify(parameters)],
    env: { PATH: searchPath, ...env },
    ...rest,
  };
}

/** Runs a program of the kit inside, to its end. */
export async function runProgram(
  sandbox: Sandbox,
  body: string,
  parameters: object,
  options: ProgramOptions = {},
): Promise<Finished> {
  return runCommand(sandbox, commandOf(body, parameters, options));
}

/** Runs a command inside with an empty standard input, to its end. @throws when it doesn't end. */
export async function runCommand(sandbox: Sandbox, command: Command): Promise<Finished> {
  const limit = AbortSignal.timeout(programMs);
  const started = await sandbox.spawn({ ...command, signal: command.signal ?? limit });
  await started.stdin.close().catch(() => undefined); // It may have ended already, and closed its end of the pipe.
  const [stdout, stderr, exit] = await Promise.all([
    textOf(started.stdout),
    textOf(started.stderr),
    started.exit,
  ]);
  if (limit.aborted)
    throw new Error(`the program didn't end within ${programMs / 1000} s: ${stdout.slice(0, 300)}`);
  return { stdout, stderr, ...exit };
}

/** A stream's text, truncated above what programs of the kit print. */
export async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    if (text.length < maxOutputCharacters) text += decoder.decode(value, { stream: true });
  }
}

/** Reads until a whole line holds the text, and returns it; undefined when the stream ends first. The rest stays unread. */
export async function waitForLine(
  stream: ReadableStream<Uint8Array>,
  text: string,
): Promise<string | undefined> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let said = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      said += decoder.decode(value, { stream: true });
      const whole = said.split("\n").slice(0, -1);
      const found = whole.find((line) => line.includes(text));
      if (found !== undefined) return found;
    }
  } finally {
    reader.releaseLock();
  }
}
