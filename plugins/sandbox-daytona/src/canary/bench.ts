import type { Mechanism } from "@ambit/attacks";
import {
  type AttemptAgainst,
  type Attempts,
  lookProgram,
  type Reached,
  readLook,
} from "@ambit/attacks/inside";
import type * as kit from "@ambit/backend-kit";
import { NotProven, runToEnd } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import type { Command } from "@ambit/core/plugin";
import type { Account } from "../account.js";
import type { Claim } from "../claims.js";
import { outputOn } from "../inside/attempts.js";
import type { StartedMachine } from "../open/start-machine.js";
import type { Machine } from "../platform/service.js";

/**
 * The catalogue's attempts by which the canary tries each mechanism, or why it tries none. Their control is the sandbox without
 * limits, or what the platform's own processes have. A mechanism that is missing here doesn't compile, nor does an attempt that
 * doesn't try it. The platform's own checks have no attempt: that its daemon refuses orders (`daemon-orders.ts`), and that a
 * deleted sandbox is gone.
 */
const triedBy = {
  "network namespace": ["answer", "datagram", "query", "gateway", "address6"],
  allowlist: ["answer", "datagram", "query", "gateway", "address6"],
  "server name check":
    "the platform's lists are of names that it looks up, and it doesn't claim to read what is sent",
  "host header check":
    "the platform's lists are of names that it looks up, and it doesn't claim to read what is sent",
  "hidden host files": "no file of the runner's host is on the platform, and nothing of it is claimed",
  "covered kernel tables": "the kernel inside isn't the runner's",
  "workspace mode": "the platform has no rules for paths, and a boundary that needs them is a gap",
  "path rules": "the platform has no rules for paths, and a boundary that needs them is a gap",
  "rules for all jails that live":
    "the platform has no rules for paths, and a boundary that needs them is a gap",
  "second bubblewrap": "a sandbox isn't launched by bubblewrap",
  "no-follow file access": "the bridge's own, the same in every sandbox: its tests try it",
  "session separation": ["arguments", "environment"],
  "closed descriptors": "no descriptor of the runner reaches the platform",
  "no new privileges": "root inside is no way out of a machine of its own",
  "pid namespace": ["arguments", "environment"],
  "ipc namespace": "a sandbox is a machine of its own, and tools inside share its memory",
  "user namespace": ["arguments", "environment"],
  "refusal of nested user namespaces": "a namespace inside is no way to another machine",
  "system call filter": "the kernel inside isn't the runner's, and no filter is claimed",
  "guard of the first process": "the first process inside is the platform's",
  "exit with the runner": "a sandbox outlives its runner on purpose: the reaper removes it",
  "private scratch": ["holding", "scratch"],
  "cleared environment": ["ownEnvironment", "names"],
  "credential broker": ["ownEnvironment", "environment", "arguments", "holding"],
  limits: ["memory", "cpu", "disk"],
  "inbound port list": "no process inside makes a connection of the runner: `inbound.ts` makes them",
  "inbound relay": "no process inside makes a connection of the runner: `inbound.ts` makes them",
} as const satisfies {
  readonly [Wanted in Mechanism]: readonly [AttemptAgainst<Wanted>, ...AttemptAgainst<Wanted>[]] | string;
};

/** Only attempts that are named above. */
export type CanaryAttempts = Attempts<Extract<(typeof triedBy)[Mechanism], readonly string[]>[number]>;

/** The two sandboxes of a canary: what works in the open one, and must fail in the limited one. */
export interface CanaryBench {
  readonly account: Account;
  readonly open: StartedMachine;
  /** What the open sandbox can reach. */
  readonly control: Reached;
  readonly limited: StartedMachine;
  readonly sandbox: RemoteSandbox;
  /** Names the ports inside it that the runner may connect to. */
  letIn(ports: readonly number[]): void;
  /** Opens one more with these ports, which is closed with the others. */
  openAnother(ports: readonly number[]): Promise<RemoteSandbox>;
  /** Why the network of the limited sandbox couldn't be limited; undefined if it is. */
  readonly unrestricted: unknown;
  /** Why no secret could be stored for it; undefined if one was stored. */
  readonly withoutSecret: unknown;
  readonly decoys: CanaryDecoys;
  readonly signal: AbortSignal;
}

/** Random texts that are searched for, each stored in one place. */
export interface CanaryDecoys {
  /** In the environment of processes that the platform starts itself. */
  readonly variable: string;
  /** The value of a secret of the organisation. */
  readonly secret: string;
  /** On the command line of a process in the open sandbox. */
  readonly process: string;
}

export type CanaryTrial = kit.Trial<CanaryBench, Claim>;

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
