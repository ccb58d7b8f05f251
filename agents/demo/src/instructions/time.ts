import { setTimeout as delay } from "node:timers/promises";
import type { Turn } from "../turn.js";
import type { InstructionOf } from "./instruction-of.js";

export async function sleep(instruction: InstructionOf<"sleep">, turn: Turn): Promise<void> {
  await delay(instruction.milliseconds, undefined, { signal: turn.signal });
}
