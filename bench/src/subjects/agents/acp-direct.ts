import { fileURLToPath } from "node:url";
import {
  type DriverAnswer,
  type DriverStep,
  driverAnswerSchema,
  type PromptFigures,
  type Subject,
} from "../../floors/driver-messages.js";
import { type Program, startProgram } from "../../machine/program.js";

const entry = fileURLToPath(new URL("../../floors/acp-driver.js", import.meta.url));

/** An agent, driven by the ACP SDK directly. */
export interface AcpDirect extends AsyncDisposable {
  readonly program: Program;
  /** A new agent for one turn, which ends afterwards. */
  run(script: string, toolUrl?: string): Promise<PromptFigures>;
  open(agent: string, toolUrl?: string): Promise<void>;
  prompt(agent: string, script: string): Promise<PromptFigures>;
}

/** @param subject default: the demo agent */
export function startAcpDirect(subject?: Subject): AcpDirect {
  const program = startProgram(entry, { messages: true });
  const waiting = new Map<number, (answer: DriverAnswer) => void>();
  let last = 0;
  program.child.on("message", (message) => {
    const answer = driverAnswerSchema.parse(message);
    waiting.get(answer.id)?.(answer);
    waiting.delete(answer.id);
  });
  program.child.on("exit", () => {
    for (const [id, answer] of waiting) answer({ id, error: `the driver left: ${program.lastWords()}` });
  });
  const ask = async (step: DriverStep) => {
    const { error, figures } = await new Promise<DriverAnswer>((resolve) => {
      last += 1;
      waiting.set(last, resolve);
      program.child.send({ id: last, subject, ...step });
    });
    if (error !== undefined) throw new Error(`driving the agent directly failed: ${error}`);
    return figures;
  };
  const figuresOf = async (step: DriverStep) => {
    const figures = await ask(step);
    if (figures === undefined) throw new Error("the driver gave no figures");
    return figures;
  };
  return {
    program,
    run: (script, toolUrl) => figuresOf({ step: "run", script, toolUrl }),
    open: async (agent, toolUrl) => void (await ask({ step: "open", agent, toolUrl })),
    prompt: (agent, script) => figuresOf({ step: "prompt", agent, script }),
    [Symbol.asyncDispose]: () => program.stop(),
  };
}
