import { readFile } from "node:fs/promises";

export type InsideProgram = "attempts" | "orders" | "scan" | "strain";

/**
 * Starts one of the programs of `inside` on a Node.js in a sandbox, without a file there.
 *
 * @param input what the program documents; without line breaks once it is JSON.
 */
export async function programLine(
  node: string,
  program: InsideProgram,
  input: unknown,
): Promise<readonly [string, ...string[]]> {
  const source = await readFile(new URL(`../../inside/${program}.cjs`, import.meta.url));
  const start = `eval(Buffer.from("${source.toString("base64")}","base64").toString())`;
  return [node, "-e", start, JSON.stringify(input)];
}

/** The line of JSON in a program's output; other lines come from the platform or the shell. */
export function lastJson(output: string): unknown {
  const line = output
    .split("\n")
    .filter((text) => text.startsWith("{"))
    .at(-1);
  if (line === undefined) throw new Error(`a program in the sandbox said "${output.trim().slice(0, 200)}"`);
  return JSON.parse(line);
}
