import { allowedCalls, type SeccompArchitecture, syscallNumber } from "@ambit/attacks/system-calls";
import type { Argument } from "./program.js";

/** A system call's number on a machine. @throws Error when none is known */
export function callIn(architecture: SeccompArchitecture, name: string): number {
  const known = allowedCalls.find((one) => one.name === name)?.numbers[architecture];
  const number = known ?? (isRuled(name) ? syscallNumber(name, architecture) : undefined);
  if (number === undefined) throw new Error(`no number of the system call ${name} is known`);
  return number;
}

/** A pointer to a text that ends with NUL. Pure. */
export const text = (words: string): Argument => ({ bytes: Buffer.from(`${words}\0`) });

const ruled = ["unshare", "mount", "ioctl", "socket"] as const;
const isRuled = (name: string): name is (typeof ruled)[number] => ruled.some((one) => one === name);
