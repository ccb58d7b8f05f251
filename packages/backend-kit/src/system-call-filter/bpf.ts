/**
 * A small assembler for classic BPF as seccomp reads it (linux/filter.h, linux/seccomp.h): statements with named
 * labels in, `struct sock_filter[]` out.
 */

/** Offsets into `struct seccomp_data`. An argument is 64 bits wide, low half first on both machines. */
export const NUMBER_OFFSET = 0;
export const ARCHITECTURE_OFFSET = 4;
export const argumentOffset = (index: number): number => 16 + 8 * index;

export const opcode = {
  loadWord: 0x20, // BPF_LD | BPF_W | BPF_ABS
  jump: 0x05, // BPF_JMP | BPF_JA
  jumpIfEqual: 0x15, // BPF_JMP | BPF_JEQ | BPF_K
  jumpIfAtLeast: 0x35, // BPF_JMP | BPF_JGE | BPF_K
  jumpIfAnyBit: 0x45, // BPF_JMP | BPF_JSET | BPF_K
  answer: 0x06, // BPF_RET | BPF_K
} as const;

const conditionalJumps = {
  "if-equal": opcode.jumpIfEqual,
  "if-at-least": opcode.jumpIfAtLeast,
  "if-any-bit": opcode.jumpIfAnyBit,
} as const;

export type BpfStatement =
  | { readonly do: "label"; readonly name: string }
  | { readonly do: "load"; readonly offset: number }
  | { readonly do: "jump"; readonly to: string }
  | { readonly do: keyof typeof conditionalJumps; readonly value: number; readonly to: string }
  | { readonly do: "answer"; readonly value: number };

type BpfInstruction = Exclude<BpfStatement, { do: "label" }>;

/** A conditional jump skips at most 255 instructions: 8 bits in the kernel's format. */
const maxConditionalJump = 255;
/** BPF_MAXINSNS: the kernel refuses a longer program. */
const maxProgramLength = 4096;

/**
 * Encodes statements as little-endian `struct sock_filter { u16 code; u8 jt, jf; u32 k }`, 8 bytes each.
 * Throws when a label is missing, lies behind the jump, or is out of reach: a mistake in the rules, never in input.
 */
export function assemble(statements: readonly BpfStatement[]): Buffer {
  const labels = new Map<string, number>();
  const instructions: BpfInstruction[] = [];
  for (const statement of statements) {
    if (statement.do !== "label") instructions.push(statement);
    else if (labels.has(statement.name))
      throw new Error(`seccomp program: label ${statement.name} occurs twice`);
    else labels.set(statement.name, instructions.length);
  }
  if (instructions.length > maxProgramLength) {
    throw new Error(
      `seccomp program: ${instructions.length} instructions, the kernel accepts ${maxProgramLength}`,
    );
  }
  const distance = (from: number, to: string, max: number): number => {
    const target = labels.get(to);
    if (target === undefined) throw new Error(`seccomp program: no label ${to}`);
    const skipped = target - from - 1;
    if (skipped < 0 || skipped > max) {
      throw new Error(`seccomp program: ${to} is ${skipped} instructions away from instruction ${from}`);
    }
    return skipped;
  };
  const encode = (
    instruction: BpfInstruction,
    index: number,
  ): [code: number, jumpTrue: number, value: number] => {
    switch (instruction.do) {
      case "load":
        return [opcode.loadWord, 0, instruction.offset];
      case "jump":
        return [opcode.jump, 0, distance(index, instruction.to, maxProgramLength)];
      case "if-equal":
      case "if-at-least":
      case "if-any-bit": {
        const skipped = distance(index, instruction.to, maxConditionalJump);
        return [conditionalJumps[instruction.do], skipped, instruction.value];
      }
      case "answer":
        return [opcode.answer, 0, instruction.value];
    }
  };
  const program = Buffer.alloc(instructions.length * 8);
  instructions.forEach((instruction, index) => {
    const [code, jumpTrue, value] = encode(instruction, index);
    program.writeUInt16LE(code, index * 8);
    program.writeUInt8(jumpTrue, index * 8 + 2);
    program.writeUInt32LE(value >>> 0, index * 8 + 4);
  });
  return program;
}
