import { readFileSync } from "node:fs";
import {
  allowedCalls,
  type SeccompArchitecture,
  syscallNumber,
  tableAddress,
  withTable,
} from "@ambit/attacks/system-calls";

/** An argument of a step: a number, a pointer to bytes or to 64-bit words, or what an earlier step left. */
export type Argument =
  | number
  | bigint
  | { readonly bytes: Uint8Array }
  | { readonly words: readonly Argument[] }
  | "last result"
  | "buffer";

/** A system call that must succeed, or the test of the user namespace's map in the buffer. */
export interface Step {
  /** The call's number on this machine, or the test. */
  readonly call: number | "user namespace test";
  readonly arguments: readonly Argument[];
  /** One line, without its end, for the program's output if the step fails. */
  readonly failure: string;
}

/** The table of `native/enter.c`, which tells what its values mean. */
const rowBytes = 64;
const [lastResult, bufferAddress] = [-2n, -3n];
const [finish, test] = [-1n, -2n];

/** A static program that takes the steps and then becomes the command in its arguments: `native/enter.c`. */
export function stepsProgram(architecture: SeccompArchitecture, steps: readonly Step[]): Buffer {
  const program = readFileSync(new URL(`../../native/enter-${architecture}`, import.meta.url));
  const dataAddress = tableAddress(program) + BigInt((steps.length + 1) * rowBytes);
  const data: Buffer[] = [];
  let length = 0;
  const place = (bytes: Uint8Array): bigint => {
    const address = dataAddress + BigInt(length);
    const padded = Buffer.alloc(Math.ceil(bytes.length / 8) * 8);
    padded.set(bytes);
    data.push(padded);
    length += padded.length;
    return address;
  };
  const valueFor = (argument: Argument): bigint => {
    if (argument === "last result") return lastResult;
    if (argument === "buffer") return bufferAddress;
    if (typeof argument !== "object") return BigInt(argument);
    return place("bytes" in argument ? argument.bytes : wordsOf(argument.words.map(valueFor)));
  };
  const row = (number: bigint, values: readonly Argument[], failure: string) => {
    const line = Buffer.from(`${failure}\n`);
    const words = [0, 1, 2, 3, 4].map((index) => valueFor(values[index] ?? 0));
    return wordsOf([number, ...words, place(line), BigInt(line.length)]);
  };
  const rows = steps.map((step) =>
    row(step.call === "user namespace test" ? test : BigInt(step.call), step.arguments, step.failure),
  );
  rows.push(row(finish, [], "the command can't be executed"));
  return withTable(program, [...rows, ...data]);
}

function wordsOf(values: readonly bigint[]): Buffer {
  const words = Buffer.alloc(values.length * 8);
  values.forEach((value, index) => {
    words.writeBigUInt64LE(BigInt.asUintN(64, value), index * 8);
  });
  return words;
}

/** A system call's number on a machine. @throws Error when none is known */
export function callIn(architecture: SeccompArchitecture, name: string): number {
  const allowed = allowedCalls.find((call) => call.name === name)?.numbers[architecture];
  const number = allowed ?? (isRuled(name) ? syscallNumber(name, architecture) : undefined);
  if (number === undefined) throw new Error(`no number of the system call ${name} is known`);
  return number;
}

/** A pointer to a text, which ends with NUL. Pure. */
export const text = (content: string): Argument => ({ bytes: Buffer.from(`${content}\0`) });

/** Calls that the program makes before the filter is loaded, which allows them with some arguments or never. */
const ruledCalls = ["unshare", "mount", "ioctl", "socket"] as const;
const isRuled = (name: string): name is (typeof ruledCalls)[number] =>
  ruledCalls.some((ruled) => ruled === name);
