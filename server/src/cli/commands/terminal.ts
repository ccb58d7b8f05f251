import { once } from "node:events";
import { ControlStringFilter, maxTerminalSide, type Terminal } from "@ambit/client";
import { messageOf } from "@ambit/core";
import { exitCodes } from "../exit-codes.js";
import { CommandRefused, connect, type RunOptions } from "../server-client.js";
import { EndingSignals, exitCodeOfSignal } from "../signals.js";
import { withIdMeant } from "../typed-id.js";

/** Ctrl+], which ends the terminal whatever its shell does. */
const leaving = "\u001d";

/** Ends what programs of the shell may have left: pasting in brackets, the mouse, the other screen, a hidden cursor, colours. */
const usualModes =
  "\u001b[?2004l\u001b[?1000l\u001b[?1002l\u001b[?1003l\u001b[?1006l\u001b[?1004l\u001b[?47l\u001b[?1l\u001b>\u001b[?25h\u001b[0m";

/** `ambit terminal`: a shell in the sandbox of an idle session of a server. @param typed its id, or as much of it as is unique */
export async function terminal(typed: string, options: RunOptions): Promise<number> {
  const { stdin, stdout, stderr } = process;
  if (!stdin.isTTY || !stdout.isTTY)
    throw new CommandRefused("a shell in a session needs a terminal here: stdin or stdout is none");
  const client = connect(options);
  // A terminal that has no size says 0.
  const size = () => ({ columns: sideOf(stdout.columns, 80), rows: sideOf(stdout.rows, 24) });
  const opened = await withIdMeant(
    "session",
    typed,
    (id) => client.openTerminal(id, size()),
    async () => (await client.sessions({ limit: 1_000 })).sessions.map(({ sessionId }) => sessionId),
  );
  stderr.write("Ctrl+] ends this terminal, with all that was started in it.\n");
  const fail = (error: unknown) => opened.close(messageOf(error));
  const resize = () => void opened.resize(size()).catch(fail);
  const leave = new AbortController();
  const left = Promise.withResolvers<number>();
  const decoder = new TextDecoder();
  const type = (bytes: Buffer) => {
    const text = decoder.decode(bytes, { stream: true });
    if (text.includes(leaving)) return left.resolve(exitCodes.ok);
    opened.write(text).catch(fail);
  };
  const restore = () => {
    stdin.setRawMode(false);
    stdout.write(usualModes);
  };
  const signals = new EndingSignals();
  process.once("exit", restore);
  process.once("SIGHUP", () => opened.close());
  stdin.setRawMode(true).on("data", type);
  stdout.on("resize", resize);
  try {
    const signalled = signals.next().then(exitCodeOfSignal);
    return await Promise.race([show(opened, stdout, stderr, leave.signal), left.promise, signalled]);
  } finally {
    leave.abort();
    opened.close();
    stdout.off("resize", resize);
    stdin.off("data", type).pause();
    process.off("exit", restore);
    restore();
  }
}

const sideOf = (side: number, usual: number) => Math.min(side || usual, maxTerminalSide);

/** @param leave aborts when its user leaves, who needs no reason. @returns the shell's exit code */
async function show(
  opened: Terminal,
  stdout: NodeJS.WriteStream,
  stderr: NodeJS.WriteStream,
  leave: AbortSignal,
): Promise<number> {
  const filter = new ControlStringFilter();
  const decoder = new TextDecoder();
  const output = opened.output();
  for (;;) {
    const { value, done } = await output.next();
    if (done) {
      const { exitCode, reason } = value;
      if (exitCode !== null) return exitCode;
      if (!leave.aborted) stderr.write(`\r\nThe terminal has ended: ${reason ?? "its shell was killed"}\r\n`);
      return exitCodes.runFailed;
    }
    if (!stdout.write(filter.pass(decoder.decode(value, { stream: true })))) await once(stdout, "drain");
  }
}
