import { chmod, mkdtemp, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type {
  Boundary,
  Command,
  ConnectionDecision,
  Exit,
  Log,
  Process,
  Sandbox,
  SandboxSpec,
  Scope,
} from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress/proxy";
import { onTestFinished } from "vitest";
import { removeTree } from "../../src/folders/remove-tree.js";
import { configSchema, LocalSandbox } from "../../src/index.js";

export const everythingOn: Boundary = {
  network: { mode: "on", rules: [] },
  filesystem: { mode: "on", readable: [], writable: [], denied: [] },
  resources: {},
  secrets: "visible",
  enforcement: "strict",
};

export const silent: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

let opened = 0;

export function specOf(overrides: Partial<SandboxSpec> = {}): SandboxSpec {
  return {
    id: `test-${process.pid}-${++opened}`,
    boundary: everythingOn,
    required: [],
    requiredPaths: [],
    onDecision: (_decision: ConnectionDecision) => undefined,
    log: silent,
    ...overrides,
  };
}

/** The limit of a whole probe, and of a test of it, in milliseconds. A busy machine takes a minute for what an idle one tries in two seconds. */
export const busy = { timeout: 240_000 };

export const scope: Scope = { signal: new AbortController().signal, defer: () => undefined };

/** A temporary folder that every user id may pass through, removed after the test. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-local-"));
  onTestFinished(async () => {
    await removeTree(folder);
  });
  return folder;
}

export async function unconfinedBackend(dataFolder?: string): Promise<LocalSandbox> {
  return new LocalSandbox(
    configSchema.parse({ dataFolder: dataFolder ?? (await temporaryFolder()), unconfined: "prefer" }),
  );
}

export async function openUnconfined(overrides: Partial<SandboxSpec> = {}): Promise<Sandbox> {
  const sandbox = await (await unconfinedBackend()).open(specOf(overrides), scope);
  onTestFinished(() => sandbox.close());
  return sandbox;
}

/** A boundary that a runner without confinement would have to refuse, and that this host can enforce. */
export async function confinedBackend(config: object = {}, lookup?: Lookup): Promise<LocalSandbox> {
  const dataFolder = await temporaryFolder();
  // A session's own user has to reach it.
  await chmod(dataFolder, 0o711);
  return new LocalSandbox(configSchema.parse({ dataFolder, ...config }), lookup);
}

export interface ConfinedOptions extends Partial<SandboxSpec> {
  readonly config?: object;
  readonly lookup?: Lookup;
}

/** A confined sandbox without network, with a writable workspace, unless `boundary` says otherwise. */
export async function openConfined(
  boundary: Partial<Boundary> = {},
  { config, lookup, ...overrides }: ConfinedOptions = {},
): Promise<Sandbox> {
  const backend = await confinedBackend(config, lookup);
  const sandbox = await backend.open(specOf({ boundary: { ...closed, ...boundary }, ...overrides }), scope);
  onTestFinished(() => sandbox.close());
  return sandbox;
}

export const closed: Boundary = {
  ...everythingOn,
  network: { mode: "off", rules: [] },
  filesystem: { mode: "workspace", readable: [], writable: [], denied: [] },
};

export interface Finished extends Exit {
  readonly stdout: string;
  readonly stderr: string;
}

export async function finish(started: Process): Promise<Finished> {
  const [stdout, stderr, exit] = await Promise.all([
    new Response(started.stdout).text(),
    new Response(started.stderr).text(),
    started.exit,
  ]);
  return { stdout, stderr, ...exit };
}

export const path = "/usr/local/bin:/usr/bin:/bin";

export async function run(
  sandbox: Sandbox,
  argv: Command["argv"],
  options: Partial<Command> = {},
): Promise<Finished> {
  return finish(await sandbox.spawn({ argv, env: { PATH: path }, ...options }));
}

export const shell = (script: string): Command["argv"] => ["/bin/sh", "-c", script];

/** Whether a process runs; a zombie doesn't. */
export async function isRunning(pid: number): Promise<boolean> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1");
    return !stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
  } catch {
    // No such process.
    return false;
  }
}
