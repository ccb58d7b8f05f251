import { messageOf, SandboxFailed } from "@ambit/core";
import type { Sandbox } from "@ambit/core/plugin";
import type { TerminalOrder, TerminalSize } from "./inside/wish.js";
import { ByteReader, commandOf, endOf, stdinOf } from "./programs.js";

/** Until its shell begins: an agent can stop whatever runs in its sandbox. */
const openingMs = 30_000;

/** Characters of what a failed program printed, for the log. */
const maxPrinted = 2_000;

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
 * @throws SandboxFailed where the sandbox lacks what it needs; the signal's reason
 */
export async function openTerminal(
  sandbox: Sandbox,
  size: TerminalSize,
  signal: AbortSignal,
): Promise<OpenedTerminal> {
  const command = commandOf(sandbox, signal);
  const env = { ...command.env, TERM: "xterm-256color", COLORTERM: "truecolor", LANG: "C.UTF-8" };
  const child = await sandbox.spawn({ ...command, env, role: "tool" });
  const printed = endOf(child.stderr, maxPrinted);
  const reader = new ByteReader(child.stdout);
  const keyboard = child.stdin.getWriter();
  const late = setTimeout(() => void child.kill(), openingMs);
  try {
    for (const bytes of await stdinOf("#terminal", size)) await keyboard.write(bytes);
    const begin = await reader.line(1_024);
    if (begin !== "") throw new Error(`it printed ${JSON.stringify(begin)}`);
  } catch (error) {
    await child.kill();
    signal.throwIfAborted();
    const { code } = await child.exit;
    const cause = new Error(`${messageOf(error)}; exit code ${code}: ${await printed}`, { cause: error });
    throw new SandboxFailed(
      "The terminal couldn't be opened: it needs node, script (of util-linux), stty and sh in the sandbox. Use an image that has them.",
      { cause, concerns: "session" },
    );
  } finally {
    clearTimeout(late);
  }
  const order = (what: TerminalOrder) =>
    // It has ended: whoever reads its output learns it.
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
