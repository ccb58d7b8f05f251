import { spawn } from "node:child_process";
import { killGroup, type Lifetime } from "../lifetime.js";
import type { DemoTurn, ToolCallReport } from "../turn.js";
import type { InstructionOf } from "./instruction-of.js";

/** How much of a command's output is kept, in characters; the rest is read and dropped. */
const outputLimit = 1_000_000;

/** Runs a shell command in the session's folder, with this process's environment. */
export async function runCommand(
  instruction: InstructionOf<"run">,
  turn: DemoTurn,
  lifetime: Lifetime,
): Promise<void> {
  const { command, askFirst } = instruction;
  await turn.callTool(
    { title: command, kind: "execute", rawInput: { command }, ask: askFirst ? "remembering" : "as-told" },
    () => shell(command, turn, lifetime),
  );
}

function shell(command: string, turn: DemoTurn, lifetime: Lifetime): Promise<ToolCallReport> {
  turn.signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    // In a separate process group, so that cancelling also reaches the shell's children.
    const child = spawn("/bin/sh", ["-c", command], {
      cwd: turn.session.cwd,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const { pid } = child;
    const release = pid === undefined ? () => {} : lifetime.adopt(pid);
    const cancel = () => {
      if (pid !== undefined) killGroup(pid);
    };
    turn.signal.addEventListener("abort", cancel);
    let output = "";
    let dropped = 0;
    const keep = (text: string) => {
      const accepted = text.slice(0, outputLimit - output.length);
      output += accepted;
      dropped += text.length - accepted.length;
    };
    child.stdout.setEncoding("utf8").on("data", keep);
    child.stderr.setEncoding("utf8").on("data", keep);
    const settle = () => {
      release();
      turn.signal.removeEventListener("abort", cancel);
    };
    child.on("error", (error) => {
      settle();
      reject(error);
    });
    child.on("close", (exitCode, signal) => {
      settle();
      if (turn.signal.aborted) return reject(turn.signal.reason);
      if (dropped > 0) output += `\n[${dropped} more characters left out]`;
      const ending = signal === null ? `exit code ${exitCode}` : `ended by ${signal}`;
      const text = `${output}${output === "" || output.endsWith("\n") ? "" : "\n"}${ending}`;
      resolve({ failed: exitCode !== 0, text, rawOutput: { exitCode, signal, output } });
    });
  });
}
