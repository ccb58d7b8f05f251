import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";

/** Processes of this machine with a text in their arguments. */
export function processesWith(text: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => argumentsOf(pid).includes(text))
    .map(Number);
}

function argumentsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
}

/** A value once it is as it must become; as it is when that takes too long. */
export async function eventually<Value>(
  read: () => Value,
  isRight: (value: Value) => boolean,
): Promise<Value> {
  for (let look = 0; look < 200 && !isRight(read()); look++) await after(25);
  return read();
}
