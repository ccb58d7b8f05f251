import { createInterface } from "node:readline/promises";

/** Where a person reads and answers. */
export interface Terminal {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
}

/** What a typed line means, or what is wrong with it: then the person is asked again. */
export type Reading<Value> = { readonly value: Value } | { readonly problem: string };

/**
 * Asks until a line can be used.
 * @param text ends with the prompt, which is repeated.
 * @returns undefined at the end of the input
 * @throws the signal's reason
 */
export async function askLine<Value>(
  { input, output }: Terminal,
  text: string,
  read: (line: string) => Reading<Value>,
  signal?: AbortSignal,
): Promise<Value | undefined> {
  const lines = createInterface({ input, output, terminal: false });
  try {
    output.write(text);
    const ended = new Promise<undefined>((resolve) => lines.once("close", () => resolve(undefined)));
    for (;;) {
      const typing = signal === undefined ? lines.question("") : lines.question("", { signal });
      const line = await Promise.race([typing, ended]);
      if (line === undefined) return undefined;
      const reading = read(line.trim());
      if ("value" in reading) return reading.value;
      if (reading.problem !== "") output.write(`${reading.problem}\n`);
      output.write(text.slice(text.lastIndexOf("\n") + 1));
    }
  } finally {
    lines.close();
  }
}

/** Asks until the answer is one of these, in lower case. The end of the input means no. @throws the signal's reason */
export async function choose(
  terminal: Terminal,
  text: string,
  choices: RegExp,
  signal?: AbortSignal,
): Promise<string> {
  const read = (line: string): Reading<string> => {
    const value = line.toLowerCase();
    return choices.test(value) ? { value } : { problem: "" };
  };
  return (await askLine(terminal, text, read, signal)) ?? "n";
}
