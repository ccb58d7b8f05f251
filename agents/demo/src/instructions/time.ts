import { setTimeout as delay } from "node:timers/promises";
import type { DemoTurn } from "../turn.js";
import type { InstructionOf } from "./instruction-of.js";

export async function sleep(instruction: InstructionOf<"sleep">, turn: DemoTurn): Promise<void> {
  await delay(instruction.milliseconds, undefined, { signal: turn.signal });
}
