/** A second reader of the kernel's filter format, written independently of the assembler, to check its programs. */
export interface SystemCall {
  readonly architecture: number;
  readonly number: number;
  readonly arguments?: readonly (number | bigint)[];
}

/** `struct seccomp_data`: int nr; u32 arch; u64 instruction_pointer; u64 args[6]. */
export function seccompData(call: SystemCall): Buffer {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number >>> 0, 0);
  data.writeUInt32LE(call.architecture, 4);
  (call.arguments ?? []).forEach((value, index) => {
    data.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)), 16 + 8 * index);
  });
  return data;
}

/** Runs a program as the kernel would and returns its answer. Throws on what the kernel's verifier refuses. */
export function interpret(program: Buffer, call: SystemCall): number {
  const data = seccompData(call);
  let accumulator = 0;
  for (let index = 0; index * 8 < program.length; index++) {
    const code = program.readUInt16LE(index * 8);
    const jumpTrue = program.readUInt8(index * 8 + 2);
    const jumpFalse = program.readUInt8(index * 8 + 3);
    const value = program.readUInt32LE(index * 8 + 4);
    if (code === 0x20) {
      if (value % 4 !== 0 || value > 60) throw new Error(`instruction ${index} loads from ${value}`);
      accumulator = data.readUInt32LE(value);
    } else if (code === 0x05) index += value;
    else if (code === 0x15) index += accumulator === value ? jumpTrue : jumpFalse;
    else if (code === 0x35) index += accumulator >= value ? jumpTrue : jumpFalse;
    else if (code === 0x45) index += (accumulator & value) !== 0 ? jumpTrue : jumpFalse;
    else if (code === 0x06) return value;
    else throw new Error(`instruction ${index} has an unknown code ${code}`);
  }
  throw new Error("the program ends without a result");
}
