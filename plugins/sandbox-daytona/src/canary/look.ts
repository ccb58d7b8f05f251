import { lookProgram, type Reached, readLook } from "@ambit/attacks/inside";
import { NotProven, runToEnd } from "@ambit/backend-kit";
import type { Command } from "@ambit/core/plugin";
import { outputOn } from "../inside/try-from.js";
import type { Machine } from "../platform/service.js";
import type { CanaryAttempts, CanaryBench } from "./bench.js";

const lookMs = 20_000;

/** Makes attempts through the platform's own access. */
export async function lookFromPlatform(
  { account }: Pick<CanaryBench, "account">,
  machine: Machine,
  attempts: CanaryAttempts,
): Promise<Reached> {
  return readLook(await outputOn(machine, await lookProgram(account.config.bridge.node, attempts), lookMs));
}

/** Makes attempts as a process of the sandbox, with these variables besides its `PATH`. */
export async function lookAsProcess(
  bench: CanaryBench,
  attempts: CanaryAttempts,
  env: Readonly<Record<string, string>> = {},
): Promise<Reached> {
  return readLook(
    await outputOf(bench, await lookProgram(bench.account.config.bridge.node, attempts), "tool", env),
  );
}

/** What a program prints as a process of the sandbox. */
export async function outputOf(
  { sandbox, signal }: CanaryBench,
  argv: readonly [string, ...string[]],
  role: Command["role"] = "tool",
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { stdout, stderr, exit } = await runToEnd(sandbox, {
    argv,
    env: { PATH: sandbox.facts.searchPath, ...env },
    signal,
    role,
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
