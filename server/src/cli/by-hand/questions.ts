import { createInterface } from "node:readline/promises";
import type { AgentEventOf } from "@ambit/core";
import { printable } from "../../logging/printable.js";
import { colors } from "../display/colors.js";

/** Characters of a call's arguments that are shown. */
const maxShown = 4_000;

/** Where a person reads and answers. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
}

/** Asks at the terminal what a run asks its user, one question at a time. */
export class Questions {
  readonly #always = new Set<string>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(
    readonly terminal: Terminal,
    /** Gives an answer to the run. It may throw for a question that is no longer open. */
    readonly answer: (id: string, body: unknown) => void,
    readonly signal: AbortSignal,
  ) {}

  ask(question: AgentEventOf<"interaction_request">): void {
    this.#last = this.#last
      .then(() => this.#ask(question))
      .catch(() => {
        // The run has ended, or no longer waits: its result says so.
      });
  }

  async #ask({ id, kind, payload = {} }: AgentEventOf<"interaction_request">): Promise<void> {
    this.signal.throwIfAborted();
    const { toolName = "the tool", input = {} } = payload;
    if (kind !== "user_approval") {
      this.answer(id, { output: `${kind} can't be answered at this terminal.`, isError: true });
      return;
    }
    if (this.#always.has(toolName)) return this.answer(id, { approved: true });
    const shown = printable(JSON.stringify(input, undefined, 2) ?? "").slice(0, maxShown);
    const text = `${colors.magenta(`May ${printable(toolName)} be called?`)}\n${shown}\n${colors.bold("[o]nce, [a]lways in this run, [n]o")} `;
    const given = await choose(this.terminal, text, /^(o(nce)?|y(es)?|a(lways)?|no?)$/, this.signal);
    if (given.startsWith("a")) this.#always.add(toolName);
    this.answer(id, { approved: !given.startsWith("n") });
  }
}

/** Asks until the answer is one of these. The end of the input means no. @throws the signal's reason */
export async function choose(
  { input, output }: Terminal,
  text: string,
  choices: RegExp,
  signal?: AbortSignal,
): Promise<string> {
  const lines = createInterface({ input, output, terminal: false });
  try {
    output.write(text);
    const ended = new Promise<string>((resolve) => lines.once("close", () => resolve("n")));
    for (;;) {
      const asked = signal === undefined ? lines.question("") : lines.question("", { signal });
      const given = (await Promise.race([asked, ended])).trim().toLowerCase();
      if (choices.test(given)) return given;
      output.write(text.slice(text.lastIndexOf("\n") + 1));
    }
  } finally {
    lines.close();
  }
}
