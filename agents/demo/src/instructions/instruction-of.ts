import type { Instruction, Verb } from "../grammar.js";

/** The instruction that a verb makes. */
export type InstructionOf<V extends Verb> = Extract<Instruction, { verb: V }>;
