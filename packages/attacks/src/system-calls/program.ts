import { readFileSync } from "node:fs";
import type { SeccompArchitecture } from "./calls.js";

/** One system call: its number as the machine has it, and up to six arguments. */
export interface NumberedCall {
  readonly number: number;
  readonly arguments: readonly bigint[];
}

/**
 * A static program that makes the calls, one after the other, and writes their results: `native/system-calls.c`. It needs no
 * interpreter and no library.
 */
export function systemCallProgram(architecture: SeccompArchitecture, calls: readonly NumberedCall[]): Buffer {
  const rows = calls.map(({ number, arguments: values }) => {
    const row = Buffer.alloc(7 * 8);
    row.writeBigUInt64LE(BigInt(number), 0);
    values.forEach((value, index) => {
      row.writeBigUInt64LE(BigInt.asUintN(64, value), 8 * (index + 1));
    });
    return row;
  });
  const end = Buffer.alloc(8, 0xff);
  return withTable(readFileSync(new URL(`system-calls-${architecture}`, folder)), [...rows, end]);
}

/** A program that makes a system call of another architecture: `native/foreign-call.c`. Undefined on a machine without one. */
export function foreignCallProgram(architecture: SeccompArchitecture): Buffer | undefined {
  return architecture === "x64" ? readFileSync(new URL(`foreign-call-${architecture}`, folder)) : undefined;
}

/** The results of a program's calls: 0 and above worked, below is -errno. */
export function resultsIn(output: Uint8Array): readonly number[] {
  const bytes = Buffer.from(output);
  return Array.from({ length: Math.floor(bytes.length / 8) }, (_, index) =>
    Number(bytes.readBigInt64LE(index * 8)),
  );
}

const folder = new URL("../../native/", import.meta.url);

/** Where a program's file is in its memory (scripts/native/program.ld). */
const baseAddress = 0x400000n;
/** Where the file's header says how long its one segment is: in the file, and in memory. */
const segmentSizeOffsets = [0x60, 0x68];

/** Where the table behind a compiled program is in its memory. Pure. */
export const tableAddress = (program: Buffer): bigint => baseAddress + BigInt(program.length);

/** A compiled program of `scripts/native` with a table behind it, which is loaded with it. Pure. */
export function withTable(program: Buffer, table: readonly Buffer[]): Buffer {
  const whole = Buffer.concat([program, ...table]);
  for (const offset of segmentSizeOffsets) whole.writeBigUInt64LE(BigInt(whole.length), offset);
  return whole;
}
