import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { LineSplitter } from "@ambit/core/plugin";
import { writeAll } from "./answers.js";
import type { TerminalOrder, TerminalSize } from "./wish.js";

/**
 * What `script` runs. It makes a pseudoterminal without an echo and without a size where its own stdin is none. The path of
 * the pseudoterminal goes to the pipe 3, and the shell waits for a line on the pipe 4: nothing is printed before.
 */
const shellOf = (size: TerminalSize) =>
  `{ stty sane ${sttyArguments(size).join(" ")} && tty >&3 && read -r begin <&4; } || exit 1; exec 3>&- 4<&-; export PS1='\\w \\$ '; command -v bash >/dev/null && exec bash --norc -i; PS1='$ ' exec sh -i`;

const sttyArguments = ({ columns, rows }: TerminalSize) => [
  "columns",
  String(Math.trunc(columns)),
  "rows",
  String(Math.trunc(rows)),
];

/**
 * A shell in a pseudoterminal. Orders come on stdin, each a line of JSON. On stdout comes one empty line, and then what the
 * terminal prints: the same pipe is the stdout of `script`, so its reader sets the pace. Ends with the shell, by its exit code,
 * or with stdin.
 *
 * Called by what loads this program: see `programs.ts`. @param input its first size, as JSON.
 */
export async function main(input: string): Promise<void> {
  const size: TerminalSize = JSON.parse(input);
  const script = spawn("script", ["-qfec", shellOf(size), "/dev/null"], {
    stdio: ["pipe", "inherit", "inherit", "pipe", "pipe"],
  });
  script.once("error", () => process.exit(1));
  script.once("exit", (code) => process.exit(code ?? 1));
  const [keyboard, , , paths, begin] = script.stdio;
  if (keyboard === null || !(paths instanceof Readable) || !(begin instanceof Writable))
    throw new TypeError("script has no pipes");
  // The shell has ended: its exit code follows.
  keyboard.on("error", () => {});
  begin.on("error", () => {});
  for await (const path of linesOf(paths)) {
    writeAll(Buffer.from("\n"));
    begin.end("\n");
    await obey(path, keyboard);
  }
}

async function obey(path: string, keyboard: Writable): Promise<void> {
  for await (const line of linesOf(process.stdin)) {
    const order: TerminalOrder = JSON.parse(line);
    if ("input" in order) await type(order.input, keyboard);
    else await resize(path, order);
  }
  process.exit(1);
}

/** Lines of JSON end at line feeds alone: readline also ends one at U+2028, which JSON may contain. */
async function* linesOf(stream: Readable): AsyncGenerator<string, void, undefined> {
  const splitter = new LineSplitter();
  for await (const bytes of stream) yield* splitter.push(bytes);
}

async function type(input: string, keyboard: Writable): Promise<void> {
  if (!keyboard.writable || keyboard.write(input)) return;
  // Rejects where the shell has ended: its exit code follows.
  await once(keyboard, "drain").catch(() => {});
}

async function resize(path: string, size: TerminalSize): Promise<void> {
  try {
    await once(spawn("stty", ["-F", path, ...sttyArguments(size)], { stdio: "ignore" }), "exit");
  } catch {
    // It can't be started, such as at the limit of processes. The terminal stays, in its earlier size.
  }
}
