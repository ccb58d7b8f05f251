import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { meterCpu } from "../../machine/cpu-meter.js";
import { startProgram } from "../../machine/program.js";

export const firstCommandSides = ["plain", "bubblewrap", "ambit", "ambit-limited"] as const;
export type FirstCommandSide = (typeof firstCommandSides)[number];

export const firstCommandRequestSchema = z.object({ id: z.number(), side: z.enum(firstCommandSides) });

const answerSchema = z.object({ id: z.number(), ms: z.number().optional(), error: z.string().optional() });
export type FirstCommandAnswer = z.infer<typeof answerSchema>;

const entry = fileURLToPath(new URL("first-command-program.js", import.meta.url));

export interface FirstCommands extends AsyncDisposable {
  /** @throws Error when the side can't run here. */
  measure(side: FirstCommandSide): Promise<{ readonly ms: number; readonly cpuMs: number }>;
}

/** A small process that opens all sandboxes, so that no side's processes are copied from the bench's memory. */
export function startFirstCommands(): FirstCommands {
  const program = startProgram(entry, { messages: true });
  const meter = meterCpu(program.pid);
  let last = 0;
  return {
    async measure(side) {
      last += 1;
      const before = meter.ms();
      const answered = once(program.child, "message");
      program.child.send({ id: last, side });
      const { ms, error } = answerSchema.parse((await answered)[0]);
      if (ms === undefined) throw new Error(`${side} can't be measured: ${error ?? program.lastWords()}`);
      return { ms, cpuMs: meter.ms() - before };
    },
    async [Symbol.asyncDispose]() {
      const ended = once(program.child, "exit");
      program.child.disconnect();
      await ended;
      await meter.close();
    },
  };
}
