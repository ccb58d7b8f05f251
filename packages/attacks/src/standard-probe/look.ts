import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { Command, Sandbox } from "@ambit/core/plugin";
import { z } from "zod";
import { runToEnd } from "../probe/bench.js";
import { Inconclusive } from "../probe/trial.js";
import type { StandardProbe } from "./standard-probe.js";

/** The attempts of `inside/look.cjs`, by id. */
export type Attempts = Readonly<Record<string, { readonly try: string } & Readonly<Record<string, unknown>>>>;
/** Who looks, and until when. */
export interface Looking {
  readonly probe: StandardProbe;
  readonly signal: AbortSignal;
}
/** What was reached, by id; null if it was refused. */
export type Reached = Readonly<Record<string, string | null>>;

const reachedSchema = z.record(z.string(), z.string().nullable());
const source = new URL("../../inside/look.cjs", import.meta.url);

/** The program was killed before it could report. */
export class Killed extends Inconclusive {}

/** Runs the attempts as a process of a run. @throws Killed, Inconclusive */
export async function lookInside(
  sandbox: Sandbox,
  { probe, signal }: Looking,
  attempts: Attempts,
  command: Partial<Command> = {},
): Promise<Reached> {
  const argv = await lookProgram(probe.node, attempts);
  const env = { PATH: searchPathOf(sandbox), ...command.env };
  const { stdout, stderr, exit } = await runToEnd(sandbox, { cwd: "/", signal, ...command, argv, env });
  if (exit.code === 0) return readLook(stdout);
  if (exit.signal !== null) throw new Killed(`a probe's program was ended by ${exit.signal}`);
  throw new Inconclusive(`a probe's program ended with ${exit.code}: ${stderr.trim().slice(-300)}`);
}

/** The same attempts as a plain process of this host: the control. */
export async function lookOutside({ signal }: Pick<Looking, "signal">, attempts: Attempts): Promise<Reached> {
  const [program, ...rest] = await lookProgram(process.execPath, attempts);
  return readLook((await promisify(execFile)(program, rest, { signal })).stdout);
}

export const searchPathOf = ({ image }: Sandbox) => image?.searchPath ?? "/usr/local/bin:/usr/bin:/bin";

/** What was reached, for messages; empty for nothing. */
export const reachedOf = (seen: Reached) =>
  Object.entries(seen)
    .filter(([, what]) => what !== null)
    .map(([id, what]) => `${id} (${what?.slice(0, 60)})`)
    .join(", ");

async function lookProgram(node: string, attempts: Attempts): Promise<readonly [string, ...string[]]> {
  const program = (await readFile(source)).toString("base64");
  return [node, "-e", `eval(Buffer.from("${program}","base64").toString())`, JSON.stringify(attempts)];
}

function readLook(output: string): Reached {
  const line = output.split("\n").find((text) => text.startsWith("{"));
  if (line === undefined) throw new Inconclusive(`a probe's program said "${output.trim().slice(0, 200)}"`);
  return reachedSchema.parse(JSON.parse(line));
}
