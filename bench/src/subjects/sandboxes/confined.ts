import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { runRequestSchema } from "@ambit/core/contract";
import type { Boundary, Log, Sandbox } from "@ambit/core/plugin";
import { configSchema, LocalSandbox } from "@ambit/sandbox-local";
import { temporaryFolder } from "../../machine/temporary-folder.js";

export const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** `own`: a network of its own, whose proxy allows no connection. `limited`: memory, processes and CPU. */
export interface Confinement {
  readonly network: "own" | "shared";
  readonly limited: boolean;
}

export interface Backend {
  open(): Promise<Sandbox>;
  /** Closes what was opened and removes its files. */
  close(): Promise<void>;
}

export function boundaryOf({ network, limited }: Confinement): Boundary {
  return {
    network: { mode: network === "own" ? "off" : "on", rules: [] },
    filesystem: { mode: "workspace", readable: [], writable: [], denied: [] },
    resources: limited ? { memoryMb: 512, processes: 128, cpus: 2 } : {},
    secrets: "visible",
    enforcement: "strict",
  };
}

/** The local backend in this process, after a probe. */
export async function openBackend(confinement: Confinement): Promise<Backend> {
  const folder = await temporaryFolder();
  const backend = new LocalSandbox(configSchema.parse({ dataFolder: join(folder.path, "data") }));
  const opened = new Set<Sandbox>();
  const open = async () => {
    const sandbox = await backend.open(
      {
        id: `bench-${randomUUID()}`,
        boundary: boundaryOf(confinement),
        required: [],
        requiredPaths: [],
        onDecision: () => undefined,
        log: silent,
      },
      { signal: new AbortController().signal, defer: () => undefined },
    );
    opened.add(sandbox);
    return sandbox;
  };
  const close = async () => {
    await Promise.all([...opened].map((sandbox) => sandbox.close()));
    await folder[Symbol.asyncDispose]();
  };
  try {
    await (await open()).close();
  } catch (error) {
    await close();
    throw error;
  }
  return { open, close };
}

/** A request with these fields and defaults for the others. */
export const requestOf = (given: object) => runRequestSchema.parse(given);
