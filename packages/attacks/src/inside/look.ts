import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { isAbsolute } from "node:path/posix";
import { promisify } from "node:util";
import type { Command, Sandbox } from "@ambit/core/plugin";
import { z } from "zod";
import { runToEnd } from "../probe/bench.js";
import { Inconclusive } from "../probe/trial.js";
import { type Attempts, isCostly, type Reached } from "./attempts.js";
import type { LookBatcher } from "./look-batcher.js";

/** Node.js inside: a name on the image's `PATH`, a path, or a command line that starts it. */
export type NodeInside = string | readonly [string, ...string[]];

/** Who looks, and until when. */
export interface Looking {
  readonly probe: { readonly node: NodeInside };
  readonly signal: AbortSignal;
  /** Makes several attempts of one process of a run in one program. Default: a program for each call. */
  readonly batcher?: LookBatcher;
}

const reachedSchema = z.record(z.string(), z.string().nullable());
/** Joined to one program. */
const sources = ["reach", "look"].map((name) => new URL(`../../inside/${name}.cjs`, import.meta.url));

/** The program was killed before it could report. */
export class Killed extends Inconclusive {}

/** Runs the attempts as a process of a run. @throws Killed, Inconclusive */
export async function tryInside(
  sandbox: Sandbox,
  looking: Looking,
  attempts: Attempts,
  command: Partial<Command> = {},
): Promise<Reached> {
  const look = (all: Attempts) => runLook(sandbox, looking, all, command);
  if (looking.batcher === undefined) return look(attempts);
  const key = isCostly(attempts) ? undefined : JSON.stringify({ ...command, role: command.role ?? "tool" });
  return looking.batcher.look(sandbox, key, attempts, look);
}

async function runLook(
  sandbox: Sandbox,
  { probe, signal }: Looking,
  attempts: Attempts,
  command: Partial<Command>,
): Promise<Reached> {
  const argv = await lookProgram(probe.node, attempts);
  const env = { ...pathFor(probe, sandbox), ...command.env };
  const { stdout, stderr, exit } = await runToEnd(sandbox, { cwd: "/", signal, ...command, argv, env });
  if (exit.code === 0) return readLook(stdout);
  const killedBy = exit.signal ?? (exit.code === killedCode ? "SIGKILL" : null);
  if (killedBy !== null) throw new Killed(`a probe's program was ended by ${killedBy}`);
  throw new Inconclusive(`a probe's program ended with ${exit.code}: ${stderr.trim().slice(-300)}`);
}

/** A text to look for in halves, since it is also in the arguments of the program that looks. */
export const halvesOf = (text: string): readonly [string, string] => [
  text.slice(0, text.length / 2),
  text.slice(text.length / 2),
];

/** What a shell, or a jail's first process, says of a program that SIGKILL ended. */
const killedCode = 137;

/** The same attempts as a plain process of this host: the control. */
export async function lookOutside({ signal }: Pick<Looking, "signal">, attempts: Attempts): Promise<Reached> {
  const [program, ...rest] = await lookProgram(process.execPath, attempts);
  return readLook((await promisify(execFile)(program, rest, { signal })).stdout);
}

export const nodeWords = (node: NodeInside): readonly [string, ...string[]] =>
  typeof node === "string" ? [node] : node;

/** No variable that isn't needed: one that is left from the sandbox's launcher is then seen. */
export const pathFor = ({ node }: Looking["probe"], sandbox: Sandbox): { readonly PATH?: string } =>
  isAbsolute(nodeWords(node)[0]) ? {} : { PATH: searchPathOf(sandbox) };

export const searchPathOf = ({ image }: Sandbox) => image?.searchPath ?? "/usr/local/bin:/usr/bin:/bin";

/** A command line that makes the attempts. @returns its words */
export async function lookProgram(
  node: NodeInside,
  attempts: Attempts,
): Promise<readonly [string, ...string[]]> {
  const program = Buffer.concat(await Promise.all(sources.map((source) => readFile(source)))).toString(
    "base64",
  );
  return [
    ...nodeWords(node),
    "-e",
    `eval(Buffer.from("${program}","base64").toString())`,
    JSON.stringify(attempts),
  ];
}

/** What its output says. @throws Inconclusive */
export function readLook(output: string): Reached {
  const line = output.split("\n").find((text) => text.startsWith("{"));
  if (line === undefined) throw new Inconclusive(`a probe's program said "${output.trim().slice(0, 200)}"`);
  return reachedSchema.parse(JSON.parse(line));
}
