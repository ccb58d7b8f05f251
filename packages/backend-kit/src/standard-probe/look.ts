import { readFile } from "node:fs/promises";
import { type Trial as KitTrial, NotProven, runToEnd } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import type { Command, SandboxSpec } from "@ambit/core/plugin";
import { z } from "zod";
import type { Claim } from "../claims.js";
import type { DockerConfig } from "../config.js";
import type { TestOptions } from "../open/open.js";
import type { Decoys } from "./decoys.js";

/** Three sandboxes without limits, each for the boundaries that it can show at once. */
export interface Bench {
  /** Network off, and workspace only. */
  readonly closed: RemoteSandbox;
  /** An allowlist, and read-only. */
  readonly listed: RemoteSandbox;
  /** Without a workspace. */
  readonly empty: RemoteSandbox;
  /** One more, which is closed with the others. */
  open(spec: SandboxSpec, options: TestOptions): Promise<RemoteSandbox>;
  readonly decoys: Decoys;
  readonly config: DockerConfig;
  readonly signal: AbortSignal;
}

export type Trial = KitTrial<Bench, Claim>;

/** What `inside/look.cjs` tries, by an id. */
export type Attempts = Readonly<Record<string, { readonly try: string } & Readonly<Record<string, unknown>>>>;
/** What was reached, by id; null where it was refused. */
export type Reached = Readonly<Record<string, string | null>>;

const reachedSchema = z.record(z.string(), z.string().nullable());
const source = new URL("../../inside/look.cjs", import.meta.url);

export async function lookProgram(node: string, attempts: Attempts): Promise<readonly [string, ...string[]]> {
  const program = (await readFile(source)).toString("base64");
  return [node, "-e", `eval(Buffer.from("${program}","base64").toString())`, JSON.stringify(attempts)];
}

export function readLook(output: string): Reached {
  const line = output.split("\n").find((text) => text.startsWith("{"));
  if (line === undefined) throw new NotProven(`a probe's program said "${output.trim().slice(0, 200)}"`);
  return reachedSchema.parse(JSON.parse(line));
}

/** As a process of a run. */
export async function lookInside(
  sandbox: RemoteSandbox,
  { config, signal }: Pick<Bench, "config" | "signal">,
  attempts: Attempts,
  command: Partial<Command> = {},
): Promise<Reached> {
  const argv = await lookProgram(config.bridge.node, attempts);
  const env = { PATH: sandbox.facts.searchPath, ...command.env };
  const { stdout, stderr, exit } = await runToEnd(sandbox, { cwd: "/", signal, ...command, argv, env });
  if (exit.code === 0) return readLook(stdout);
  if (exit.signal !== null) return {};
  throw new NotProven(`a probe's program ended with ${exit.code}: ${stderr.trim().slice(-300)}`);
}
