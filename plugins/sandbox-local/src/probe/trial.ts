import { randomBytes } from "node:crypto";
import type {
  Boundary,
  Command,
  ConnectionDecision,
  FilesystemBoundary,
  SandboxSpec,
} from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress/proxy";
import type { Claim } from "../claims.js";
import type { ConfinedSandbox } from "../confined/sandbox.js";

/** What a trial may do: open sandboxes of the backend under probe, and have them closed afterwards. */
export interface Bench {
  open(boundary: Partial<Boundary>, options?: BenchOptions): Promise<ConfinedSandbox>;
  readonly signal: AbortSignal;
}

export interface BenchOptions {
  readonly lookup?: Lookup;
  readonly onDecision?: (decision: ConnectionDecision) => void;
}

/** What was done for each capability, or what was seen of it that isn't what was promised. */
export type Seen = Partial<Record<Claim, string | NotProven>>;

/** One attack with its control. A capability is proven when every trial that shows it has something to say of it. */
export interface Trial {
  readonly shows: readonly Claim[];
  /** @throws NotProven for all that it shows. */
  run(bench: Bench): Promise<Seen>;
}

/** What was seen isn't what was promised. */
export class NotProven extends Error {
  override readonly name = "NotProven";
}

/** Fails a trial with these words unless `holds`. */
export function expectThat(holds: boolean, otherwise: string): asserts holds {
  if (!holds) throw new NotProven(otherwise);
}

export const openBoundary: Boundary = {
  network: { mode: "on", rules: [] },
  filesystem: filesystem("on"),
  resources: {},
  secrets: "visible",
  enforcement: "strict",
};

export function filesystem(mode: FilesystemBoundary["mode"]): FilesystemBoundary {
  return { mode, readable: [], writable: [], denied: [] };
}

export function probeSpec(boundary: Partial<Boundary>, onDecision: BenchOptions["onDecision"]): SandboxSpec {
  const nothing = () => undefined;
  return {
    id: `probe-${randomBytes(9).toString("hex")}`,
    boundary: { ...openBoundary, ...boundary },
    required: [],
    requiredPaths: [],
    onDecision: onDecision ?? nothing,
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  };
}

export interface Ran {
  readonly stdout: string;
  readonly code: number | null;
}

/** Runs a command to its end. Every script prints a marker, so that one which never ran can't look refused. */
export async function runIn(
  sandbox: ConfinedSandbox,
  argv: Command["argv"],
  options: Partial<Command> = {},
): Promise<Ran> {
  const started = await sandbox.spawn({ argv, env: { PATH: "/usr/local/bin:/usr/bin:/bin" }, ...options });
  const [stdout, , exit] = await Promise.all([
    new Response(started.stdout).text(),
    new Response(started.stderr).text(),
    started.exit,
  ]);
  return { stdout, code: exit.code };
}

export const shell = (script: string): Command["argv"] => ["/bin/sh", "-c", script];
export const node = (script: string, ...args: string[]): Command["argv"] => [
  process.execPath,
  "-e",
  script,
  ...args,
];
