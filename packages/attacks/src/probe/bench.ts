import { randomBytes } from "node:crypto";
import type {
  Boundary,
  Command,
  Exit,
  FilesystemBoundary,
  Log,
  Sandbox,
  SandboxSpec,
} from "@ambit/core/plugin";

export function filesystem(mode: FilesystemBoundary["mode"]): FilesystemBoundary {
  return { mode, readable: [], writable: [], denied: [] };
}

/** Without limits, for a control. */
export const unlimitedBoundary: Boundary = {
  network: { mode: "on", rules: [] },
  filesystem: filesystem("on"),
  resources: {},
  secrets: "visible",
  enforcement: "strict",
};

/** For probes, whose findings report what went wrong. */
export const quietLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** A sandbox under probe. @param boundary its limits; the rest is unlimited. */
export function probeSpec(
  boundary: Partial<Boundary>,
  more: Partial<Omit<SandboxSpec, "boundary">> = {},
): SandboxSpec {
  return {
    id: `probe-${randomBytes(9).toString("hex")}`,
    boundary: { ...unlimitedBoundary, ...boundary },
    required: [],
    requiredPaths: [],
    onDecision: () => undefined,
    log: quietLog,
    ...more,
  };
}

/**
 * Works with sandboxes that end with the work, or as soon as the signal aborts, which also ends everything that the work
 * waits for.
 *
 * @param closeAll closes what is open; called again at the end, where its errors are reported.
 */
export async function closingAfter<Result>(
  signal: AbortSignal,
  closeAll: () => Promise<unknown>,
  work: () => Promise<Result>,
): Promise<Result> {
  const stop = () => void closeAll().catch(() => undefined);
  // A separate signal, since many concurrent probes would add too many listeners to one.
  const over = AbortSignal.any([signal]);
  over.addEventListener("abort", stop, { once: true });
  try {
    return await work();
  } finally {
    over.removeEventListener("abort", stop);
    await closeAll();
  }
}

export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly exit: Exit;
}

/** Runs a command to its end, without input. */
export async function runToEnd(sandbox: Pick<Sandbox, "spawn">, command: Command): Promise<Ran> {
  const started = await sandbox.spawn(command);
  const [stdout, stderr, exit] = await Promise.all([
    new Response(started.stdout).text(),
    new Response(started.stderr).text(),
    started.exit,
    started.stdin.close().catch(() => undefined),
  ]);
  return { stdout, stderr, exit };
}
