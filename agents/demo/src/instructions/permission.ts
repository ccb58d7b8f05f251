import type { DemoTurn } from "../turn.js";
import type { InstructionOf } from "./instruction-of.js";

/** Asks for permission as if to execute something, and only reports the answer. Asks every time. */
export async function askPermission(instruction: InstructionOf<"ask">, turn: DemoTurn): Promise<void> {
  const { text } = instruction;
  const chosen = await turn.callTool(
    { title: text, kind: "execute", rawInput: { command: text }, ask: "always" },
    async () => ({ failed: false, text: "allowed" }),
  );
  turn.signal.throwIfAborted();
  await turn.sayLine(`${chosen ?? "no answer"}: ${text}`);
}
