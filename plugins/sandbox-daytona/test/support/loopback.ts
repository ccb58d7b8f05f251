import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ConnectionDecision, Log, Sandbox, SandboxSpec, Scope } from "@ambit/core/plugin";
import {
  type LoopbackDaytona,
  type LoopbackOptions,
  startLoopbackDaytona,
  unavailableReason,
} from "@ambit/daytona-loopback";
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from "vitest";
import { configSchema, type DaytonaConfig, DaytonaSandbox } from "../../src/index.js";
import { closed } from "./boundaries.js";
import { loopbackOptions, settingsFor } from "./settings.js";

/** One for each test file; skipped with a reason if this machine can't run it. */
export function useLoopback(options: LoopbackOptions = {}): () => LoopbackDaytona {
  const reason = unavailableReason();
  let running: LoopbackDaytona | undefined;
  beforeAll(async () => {
    if (reason !== undefined) return;
    running = await startLoopbackDaytona(loopbackOptions(options));
  });
  afterAll(() => running?.close());
  beforeEach((context) => {
    if (reason !== undefined) context.skip(`host: ${reason}`);
    running?.faults.clear();
  });
  return () => {
    if (running === undefined) throw new Error("there is no loopback Daytona");
    return running;
  };
}

/** With a folder that is removed after the test. */
export async function configFor(
  daytona: Pick<LoopbackDaytona, "apiKey" | "apiUrl">,
  overrides: object = {},
): Promise<DaytonaConfig> {
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-daytona-"));
  onTestFinished(() => rm(dataFolder, { recursive: true, force: true }));
  return configSchema.parse({ ...settingsFor(daytona), dataFolder, ...overrides });
}

export async function backendFor(daytona: LoopbackDaytona, overrides: object = {}): Promise<DaytonaSandbox> {
  return new DaytonaSandbox(await configFor(daytona, overrides));
}

export interface Logged {
  readonly log: Log;
  readonly lines: string[];
}

export function logged(): Logged {
  const lines: string[] = [];
  const write = (fields: Readonly<Record<string, unknown>>, message: string) => {
    lines.push(
      `${message} ${JSON.stringify(fields, (_key, value) => (value instanceof Error ? String(value) : value))}`,
    );
  };
  return { lines, log: { debug: write, info: write, warn: write, error: write } };
}

let opened = 0;

export function specOf(overrides: Partial<SandboxSpec> = {}): SandboxSpec {
  return {
    id: `test-${process.pid}-${++opened}`,
    boundary: closed,
    required: [],
    requiredPaths: [],
    onDecision: (_decision: ConnectionDecision) => undefined,
    log: logged().log,
    ...overrides,
  };
}

export function scopeOf(signal: AbortSignal = new AbortController().signal): Scope {
  return { signal, defer: () => undefined };
}

export async function open(backend: DaytonaSandbox, overrides: Partial<SandboxSpec> = {}): Promise<Sandbox> {
  const sandbox = await backend.open(specOf(overrides), scopeOf());
  onTestFinished(() => sandbox.close());
  return sandbox;
}

/** What a shell line prints in the sandbox. */
export async function printed(
  sandbox: Sandbox,
  line: string,
  env: Record<string, string> = {},
): Promise<string> {
  const argv = ["/bin/sh", "-c", line] as const;
  const started = await sandbox.spawn({ argv, env: { PATH: sandbox.image?.searchPath ?? "", ...env } });
  const [output] = await Promise.all([
    new Response(started.stdout).text(),
    started.stdin.close(),
    started.exit,
  ]);
  return output;
}

/** Names of sandboxes and secrets that aren't being deleted. */
export function left(daytona: LoopbackDaytona): readonly string[] {
  return whatIsLeft(daytona).map(({ name }) => name);
}

export function whatIsLeft(
  daytona: LoopbackDaytona,
): readonly { readonly name: string; readonly state: string }[] {
  const sandboxes = daytona.sandboxes().map(({ name, state }) => ({ name, state }));
  const secrets = daytona.secrets().map(({ name }) => ({ name, state: "stored" }));
  return [...sandboxes, ...secrets].filter(({ state }) => state !== "destroying" && state !== "destroyed");
}

export async function expectNothingLeft(daytona: LoopbackDaytona): Promise<void> {
  await expect.poll(() => whatIsLeft(daytona), { timeout: 5_000 }).toEqual([]);
}
