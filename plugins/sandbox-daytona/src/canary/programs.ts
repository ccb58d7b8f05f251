import { NotProven, runToEnd } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import type { Command } from "@ambit/core/plugin";
import { z } from "zod";
import { lastJson, programLine } from "../inside/programs.js";
import { runInside } from "../inside/try-from.js";
import type { Bench } from "./bench.js";

export interface Search {
  /** The texts to search for, by id. */
  readonly values: Readonly<Record<string, string>>;
  readonly folders?: readonly string[];
}

const seenSchema = z.strictObject({
  /** The places where they were found, by id. */
  found: z.record(z.string(), z.array(z.string())),
  /** Names of the environment's variables. */
  names: z.array(z.string()),
  pid: z.int(),
});
export type Seen = z.output<typeof seenSchema>;

const searchMs = 20_000;

/** Searches for texts through the platform's own access. */
export async function searchPlatform(
  { account }: Bench,
  machine: Bench["open"]["machine"],
  search: Search,
): Promise<Seen> {
  const { node } = account.config.bridge;
  return seenSchema.parse(await runInside(machine, node, "scan", inputOf(search), searchMs));
}

/** Searches for texts as a process of the sandbox. */
export async function searchAsProcess(
  { sandbox, account, signal }: Bench,
  search: Search,
  env: Readonly<Record<string, string>> = {},
): Promise<Seen> {
  const argv = await programLine(account.config.bridge.node, "scan", inputOf(search));
  return seenSchema.parse(lastJson(await outputOf(sandbox, argv, signal, env)));
}

export async function outputOf(
  sandbox: RemoteSandbox,
  argv: readonly [string, ...string[]],
  signal: AbortSignal,
  env: Readonly<Record<string, string>> = {},
  role: Command["role"] = "tool",
): Promise<string> {
  const { stdout, stderr, exit } = await runToEnd(sandbox, {
    argv,
    env: { PATH: sandbox.facts.searchPath, ...env },
    signal,
    ...(role === undefined ? {} : { role }),
  });
  if (exit.code !== 0) {
    const said = stderr.trim().slice(0, 200);
    throw new NotProven(
      `${argv[0]} ended with ${exit.code ?? exit.signal} in the sandbox: ${said}`,
      "give the image a Node.js 18 or newer",
    );
  }
  return stdout;
}

function inputOf({ values, folders = [] }: Search) {
  const encoded = Object.entries(values).map(([id, text]) => [
    id,
    Buffer.from(text, "utf8").toString("base64"),
  ]);
  return { values: Object.fromEntries(encoded), folders };
}
