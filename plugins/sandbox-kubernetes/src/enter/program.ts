import { codeAddress, type SeccompArchitecture, staticProgram } from "@ambit/attacks/system-calls";

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
  /** The call's number on this machine, or `test`. */
  readonly call: number | "user namespace test";
  readonly arguments: readonly Argument[];
  /** One line, without its end, for the program's output if the step fails. */
  readonly failure: string;
}

/**
 * Machine code that makes each call of the table behind it and then executes its own arguments as a command. In C:
 *
 *     for (; row->call != -1; row++) {
 *       if (row->call == -2) { if (buffer[19] != ' ') continue; }
 *       else if ((last = syscall(row->call, …)) >= 0) continue;
 *       write(1, row->message, row->length); exit(125);
 *     }
 *     execve(argv[1], argv + 1, environment);
 *
 * Of a row's arguments, -2 as the first means the last result, and -3 as the second the buffer. Byte 19 of
 * `/proc/self/uid_map` is a space where the first user outside is 0: the host's root. Assembled with GNU as; ends on a
 * multiple of 8, where the table begins.
 */
const loops: Readonly<Record<SeccompArchitecture, string>> = {
  x64: `
    4989e6 4881ec00010000 4989e7 4c8d2594000000 498b0424 4883f8ff 746b 4883f8fe 743c 498b7c2408 4883fffe 490f44fd
    498b742410 4883fefd 490f44f7 498b542418 4d8b542420 4d8b442428 4531c9 0f05 4885c0 7810 4989c5 4983c440 ebb4
    41807f1320 75f3 498b742430 498b542438 bf01000000 b801000000 0f05 bf7d000000 b8e7000000 0f05
    498b06 498d54c610 498d7610 488b3e b83b000000 0f05 ebc6 0f1f8000000000`,
  arm64: `
    f3030091 ff0304d1 f4030091 b5040010 a80240f9 1f0500b1 40030054 1f0900b1 c0010054 a08640a9 1f0800b1 c002809a
    3f0c00b1 8102819a a28e41a9 a41640f9 050080d2 010000d4 e000f8b7 f60300aa b5020191 efffff17 804e4039 1f800071
    81ffff54 a10a43a9 200080d2 080880d2 010000d4 a00f80d2 c80b80d2 010000d4 620240f9 620e028b 42400091 61420091
    200040f9 a81b80d2 010000d4 f2ffff17`,
};

const rowBytes = 64;
const [lastResult, bufferAddress] = [-2n, -3n];
const [finish, test] = [-1n, -2n];

/** A static program that takes the steps and then becomes the command in its arguments. Pure. */
export function stepsProgram(architecture: SeccompArchitecture, steps: readonly Step[]): Buffer {
  const code = Buffer.from(loops[architecture].replaceAll(/\s/g, ""), "hex");
  const dataAddress = codeAddress + BigInt(code.length + (steps.length + 1) * rowBytes);
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
  const row = (number: bigint, given: readonly Argument[], failure: string) => {
    const line = Buffer.from(`${failure}\n`);
    const values = [0, 1, 2, 3, 4].map((index) => valueFor(given[index] ?? 0));
    return wordsOf([number, ...values, place(line), BigInt(line.length)]);
  };
  const rows = steps.map(({ call, arguments: given, failure }) =>
    row(call === "user namespace test" ? test : BigInt(call), given, failure),
  );
  rows.push(row(finish, [], "the command can't be executed"));
  return staticProgram(architecture, Buffer.concat([code, ...rows, ...data]));
}

function wordsOf(values: readonly bigint[]): Buffer {
  const words = Buffer.alloc(values.length * 8);
  values.forEach((value, index) => {
    words.writeBigUInt64LE(BigInt.asUintN(64, value), index * 8);
  });
  return words;
}
