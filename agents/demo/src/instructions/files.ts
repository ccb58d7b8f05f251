import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { DemoTurn } from "../turn.js";
import type { InstructionOf } from "./instruction-of.js";

/** How much of a file is shown, in characters. */
const shownLimit = 100_000;

/** Reads a text file. This is the agent's own read, never the client's: both share the file system. */
export async function readPath(instruction: InstructionOf<"read">, turn: DemoTurn): Promise<void> {
  const path = resolve(turn.session.cwd, instruction.path);
  await turn.callTool(
    {
      title: `Read ${instruction.path}`,
      kind: "read",
      rawInput: { path },
      locations: [{ path }],
      ask: instruction.askFirst ? "remembering" : "as-told",
    },
    async () => {
      const whole = await readFile(path, { encoding: "utf8", signal: turn.signal });
      const remaining = whole.length - shownLimit;
      const text =
        remaining > 0 ? `${whole.slice(0, shownLimit)}\n[${remaining} more characters left out]` : whole;
      return { failed: false, text, rawOutput: { text } };
    },
  );
}

/** Writes a text file, with the folders above it, and reports the change as a diff. */
export async function writePath(instruction: InstructionOf<"write">, turn: DemoTurn): Promise<void> {
  const path = resolve(turn.session.cwd, instruction.path);
  const newText = instruction.text;
  await turn.callTool(
    {
      title: `Write ${instruction.path}`,
      kind: "edit",
      rawInput: { path, text: newText },
      locations: [{ path }],
      ask: instruction.askFirst ? "remembering" : "as-told",
    },
    async () => {
      const oldText = await readIfThere(path, turn.signal);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, newText, { signal: turn.signal });
      const text = `wrote ${Buffer.byteLength(newText)} bytes to ${path}`;
      const content = [{ type: "diff" as const, path, oldText, newText }];
      return { failed: false, text, content, rawOutput: { text } };
    },
  );
}

async function readIfThere(path: string, signal: AbortSignal): Promise<string | null> {
  try {
    return await readFile(path, { encoding: "utf8", signal });
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return null;
    throw error;
  }
}
