import type { SeccompArchitecture } from "./architecture.js";

/** One system call: its number as the machine has it, and up to six arguments. */
export interface NumberedCall {
  readonly number: number;
  readonly arguments: readonly bigint[];
}

/**
 * Machine code that makes every call of the table behind it and writes each result to standard output, 8 bytes
 * little-endian. In C: `for (; row[0] != -1; row += 7) { r = syscall(row[0], …); write(1, &r, 8); } exit(0);`
 * Assembled with LLVM; ends on a multiple of 8, where the table begins.
 */
const loops: Readonly<Record<SeccompArchitecture, string>> = {
  x64: `
    4c8d2551000000 498b0424 4883f8ff 743c 498b7c2408 498b742410 498b542418 4d8b542420 4d8b442428 4d8b4c2430 0f05
    50 b801000000 bf01000000 4889e6 ba08000000 0f05 58 4983c438 ebba b83c000000 31ff 0f05 6690`,
  arm64: `
    94020010 880240f9 1f0500b1 c0010054 808640a9 828e41a9 849642a9 010000d4
    e00f1ff8 200080d2 e1030091 020180d2 080880d2 010000d4 ff430091 94e20091 f1ffff17 000080d2 a80b80d2 010000d4`,
};

/** Calls `getpid` as a 32-bit program does (`int 0x80`), writes the result, and exits. */
const foreignCall = "b814000000 cd80 50 b801000000 bf01000000 4889e6 ba08000000 0f05 b83c000000 31ff 0f05";

/** A static program that makes the calls, one after the other. Needs no interpreter and no library. */
export function systemCallProgram(architecture: SeccompArchitecture, calls: readonly NumberedCall[]): Buffer {
  const rows = calls.map(({ number, arguments: given }) => {
    const row = Buffer.alloc(7 * 8);
    row.writeBigUInt64LE(BigInt(number), 0);
    given.forEach((value, index) => {
      row.writeBigUInt64LE(BigInt.asUintN(64, value), 8 * (index + 1));
    });
    return row;
  });
  return staticProgram(
    architecture,
    Buffer.concat([codeOf(loops[architecture]), ...rows, Buffer.alloc(8, 0xff)]),
  );
}

/** A program that makes a system call of another architecture. Undefined on a machine that has none. */
export function foreignCallProgram(architecture: SeccompArchitecture): Buffer | undefined {
  return architecture === "x64" ? staticProgram(architecture, codeOf(foreignCall)) : undefined;
}

/** The results of a program's calls: 0 and above worked, below is -errno. */
export function resultsIn(output: Uint8Array): readonly number[] {
  const bytes = Buffer.from(output);
  return Array.from({ length: Math.floor(bytes.length / 8) }, (_, index) =>
    Number(bytes.readBigInt64LE(index * 8)),
  );
}

const codeOf = (hexadecimal: string) => Buffer.from(hexadecimal.replaceAll(/\s/g, ""), "hex");

const headerBytes = 64;
const segmentBytes = 56;
const address = 0x400000n;
/** Where the code of a static program begins in its memory. */
export const codeAddress = address + BigInt(headerBytes + segmentBytes);
/** EM_X86_64, EM_AARCH64 (linux/elf-em.h). */
const machine: Readonly<Record<SeccompArchitecture, number>> = { x64: 62, arm64: 183 };

/** An ELF file with one segment, readable and executable, that is loaded whole and begins after the headers. */
export function staticProgram(architecture: SeccompArchitecture, code: Buffer): Buffer {
  const head = Buffer.alloc(headerBytes + segmentBytes);
  head.write("\x7fELF", 0, "latin1");
  head.set([2, 1, 1], 4); // 64 bits, little-endian, version 1
  head.writeUInt16LE(2, 16); // ET_EXEC
  head.writeUInt16LE(machine[architecture], 18);
  head.writeUInt32LE(1, 20);
  head.writeBigUInt64LE(address + BigInt(head.length), 24); // entry
  head.writeBigUInt64LE(BigInt(headerBytes), 32); // segments
  head.writeUInt16LE(headerBytes, 52);
  head.writeUInt16LE(segmentBytes, 54);
  head.writeUInt16LE(1, 56);
  const size = BigInt(head.length + code.length);
  head.writeUInt32LE(1, headerBytes); // PT_LOAD
  head.writeUInt32LE(5, headerBytes + 4); // readable, executable
  head.writeBigUInt64LE(0n, headerBytes + 8);
  for (const offset of [16, 24]) head.writeBigUInt64LE(address, headerBytes + offset);
  for (const offset of [32, 40]) head.writeBigUInt64LE(size, headerBytes + offset);
  head.writeBigUInt64LE(0x10000n, headerBytes + 48); // pages of 64 KiB exist
  return Buffer.concat([head, code]);
}
