import { SandboxFailed } from "@ambit/core";
import type { Sandbox } from "@ambit/core/plugin";
import type { TerminalOrder, TerminalSize } from "./inside/wish.js";
import { ByteReader, commandOf, failureOf, stdinOf } from "./programs.js";

/** Milliseconds until its shell must have begun: an agent can stop whatever runs in its sandbox. */
const openingMs = 30_000;

/** A shell in a sandbox. It ends when the signal that it was opened with aborts, with all that it started. */
export interface OpenedTerminal {
  /** What it prints, at the pace of its reader: the shell waits for a slow one. Ends with the shell. */
  readonly output: AsyncIterable<Uint8Array>;
  /** The shell's exit code; null where something else ended it. Never rejects. */
  readonly exitCode: Promise<number | null>;
  /** Types a text, at the pace of the terminal. Ignored after the end. */
  write(input: string): Promise<void>;
  /** Ignored after the end. */
  resize(size: TerminalSize): Promise<void>;
}

/**
 * Opens a terminal, with a shell that is one more process of the sandbox: a tool's, with a home of its own, the workspace as its
 * folder, and neither the agent's variables nor its home.
 *
 * @throws SandboxFailed where the sandbox lacks what it needs, or the shell doesn't begin in time; the signal's reason
 */
export async function openTerminal(
  sandbox: Sandbox,
  size: TerminalSize,
  signal: AbortSignal,
): Promise<OpenedTerminal> {
  const command = commandOf(sandbox, signal);
  const env = { ...command.env, TERM: "xterm-256color", COLORTERM: "truecolor", LANG: "C.UTF-8" };
  const child = await sandbox.spawn({ ...command, env, role: "tool" });
  const failure = failureOf(child);
  const reader = new ByteReader(child.stdout);
  const keyboard = child.stdin.getWriter();
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    void child.kill();
  }, openingMs);
  try {
    for (const bytes of await stdinOf("#terminal", size)) await keyboard.write(bytes);
    const begin = await reader.line(1_024);
    if (begin !== "") throw new Error(`it printed ${JSON.stringify(begin)}`);
  } catch (error) {
    await child.kill();
    signal.throwIfAborted();
    const cause = await failure(error);
    const reason = isLate
      ? `it didn't begin within ${openingMs / 1_000} s, since the sandbox is busy, or something stopped it there. Try again, or end the session.`
      : "it needs node, script (of util-linux), stty and sh in the sandbox. Use an image that has them.";
    throw new SandboxFailed(`The terminal couldn't be opened: ${reason}`, { cause, concerns: "session" });
  } finally {
    clearTimeout(limit);
  }
  const order = (what: TerminalOrder) =>
    // Rejects where it has ended, which the reader of its output learns.
    keyboard.write(Buffer.from(`${JSON.stringify(what)}\n`)).catch(() => {});
  return {
    output: untilEnd(reader),
    exitCode: child.exit.then(({ code }) => code),
    write: (input) => order({ input }),
    resize: ({ columns, rows }) => order({ columns, rows }),
  };
}

/** A process that is killed breaks its output. */
async function* untilEnd(reader: ByteReader): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* reader.remainder();
  } catch {
    // Its exit says why.
  }
}
