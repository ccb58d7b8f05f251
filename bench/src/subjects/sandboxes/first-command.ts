import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { meterCpu } from "../../machine/cpu-meter.js";
import { startProgram } from "../../machine/program.js";

export const firstCommandSides = [
  "plain",
  "bubblewrap",
  "sandbox-runtime",
  "ambit",
  "ambit-limited",
  "docker-run",
  "ambit-docker",
  "ambit-docker-prepared",
  "docker-run-gvisor",
  "ambit-gvisor",
] as const;
export type FirstCommandSide = (typeof firstCommandSides)[number];

export const firstCommandRequestSchema = z.object({ id: z.number(), side: z.enum(firstCommandSides) });

const answerSchema = z.object({ id: z.number(), ms: z.number().optional(), error: z.string().optional() });
export type FirstCommandAnswer = z.infer<typeof answerSchema>;

/** What some sides need. They fail without it. */
export const placesSchema = z.object({
  engine: z.object({ socket: z.string(), image: z.string() }).optional(),
  /** URL of sandbox-runtime's entry. */
  sandboxRuntime: z.string().optional(),
});
export type Places = z.infer<typeof placesSchema>;

const entry = fileURLToPath(new URL("first-command-program.js", import.meta.url));

export interface FirstCommandCost {
  readonly ms: number;
  /** Of all processes of the program meanwhile; not of an engine's. */
  readonly cpuMs: number;
}

export interface FirstCommands extends AsyncDisposable {
  /** Several at once are measured at once. @throws Error when the side can't run here. */
  measure(side: FirstCommandSide): Promise<FirstCommandCost>;
}

/** A small process that opens all sandboxes, so that no side's processes are copied from the bench's memory. */
export function startFirstCommands(places: Places): FirstCommands {
  const program = startProgram(entry, { messages: true, arguments: [JSON.stringify(places)] });
  const meter = meterCpu(program.pid);
  const waiting = new Map<number, PromiseWithResolvers<FirstCommandAnswer>>();
  program.child.on("message", (message) => {
    const answer = answerSchema.parse(message);
    waiting.get(answer.id)?.resolve(answer);
  });
  program.child.once("exit", () => {
    const ended = new Error(`the program that opens sandboxes ended: ${program.lastWords()}`);
    for (const { reject } of waiting.values()) reject(ended);
  });
  let last = 0;
  return {
    async measure(side) {
      last += 1;
      const id = last;
      const before = meter.ms();
      const answered = Promise.withResolvers<FirstCommandAnswer>();
      waiting.set(id, answered);
      program.child.send({ id, side });
      const { ms, error } = await answered.promise;
      waiting.delete(id);
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
