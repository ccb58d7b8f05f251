import {
  AmbitError,
  type Command,
  type FileEntry,
  HarnessFailed,
  type JsonObject,
  type LateStart,
  type Log,
  type Process,
  type Sandbox,
} from "@ambit/core/plugin";
import { obeyedExit, obeyedMessage } from "../../profiles/handoffs.js";
import type { ObeyedPath, Profile, SessionSettings } from "../../profiles/profile.js";
import { closeAgent } from "../acp-agent.js";
import type { DriverLimits } from "../limits.js";
import { type AgentAbilities, readInitialize } from "../wire/answers.js";
import type { AcpConnection } from "../wire/connection.js";
import { settledWithin } from "../wire/failures.js";
import type { MessageIntake } from "../wire/message-intake.js";

export interface BeginAgentOptions {
  readonly profile: Profile;
  readonly launch: AgentLaunchPlan;
  readonly limits: DriverLimits;
  readonly intake: MessageIntake;
}

/** The part of a start that an agent needs before it has a conversation. */
export interface BeginScope {
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  readonly log: Log;
  /** Called once it has been spawned: from then on it has to be closed. */
  onSpawned?(agent: Parameters<typeof closeAgent>[0]): void;
}

/** What an agent's output says about a start that takes too long: one that prints other things may not speak ACP at all. */
export function whyLate({ connection, profile }: Parameters<typeof closeAgent>[0]): LateStart | undefined {
  const { speaksAcp, noise } = connection;
  if (noise === undefined) return undefined;
  if (speaksAcp) return { sentence: noise, retryable: true };
  return { sentence: `No message of ACP came from ${profile.title}. ${noise}`, retryable: false };
}

/** An agent's process that has answered `initialize`, and nothing else. */
export interface BegunAgent {
  readonly process: Process;
  readonly connection: AcpConnection;
  readonly abilities: AgentAbilities;
}

/** Spawns the agent in the scope's sandbox and connects to it. What was spawned is closed if that fails. */
export async function beginAgent(
  { profile, launch, limits, intake }: BeginAgentOptions,
  { sandbox, signal, log, onSpawned }: BeginScope,
): Promise<BegunAgent> {
  throwIfStopped(signal, profile);
  await sandbox.writeFiles(launch.files);
  // The ACP SDK takes tens of milliseconds to load, so it is loaded while the agent starts, not with the server.
  const [process, { AcpConnection }] = await Promise.all([
    spawned(sandbox, launch, profile),
    import("../wire/connection.js"),
  ]);
  const connection = new AcpConnection({ process, title: profile.title, intake, log });
  const begun = { profile, process, connection, limits };
  onSpawned?.(begun);
  return await orExplained(begun, launch, () =>
    unlessStopped(signal, profile, async () => ({
      process,
      connection,
      abilities: readInitialize(
        await connection.request(
          "initialize",
          {
            // Exactly this version: when offered more, some agents answer with an incompatible draft of version 2.
            protocolVersion: 1,
            clientCapabilities: { ...profile.clientCapabilities, elicitation: { form: {}, url: {} } },
            clientInfo: { name: "ambit", title: "Ambit", version: "0.1.0" },
          },
          "initialize",
          signal,
        ),
        profile.title,
      ),
    })),
  );
}

/** Milliseconds until the exit of an agent is known that has closed its output. */
const exitSeenMs = 1_000;

/** Closes the agent if this fails. An agent that found what it would obey in its workspace has exited with that. */
export async function orExplained<Result>(
  agent: Parameters<typeof closeAgent>[0],
  { obeyed }: Pick<AgentLaunchPlan, "obeyed">,
  start: () => Promise<Result>,
): Promise<Result> {
  const { profile, process, connection } = agent;
  try {
    return await start();
  } catch (error) {
    const exited = connection.closed ? await settledWithin(process.exit, exitSeenMs) : undefined;
    await closeAgent(agent, false);
    const obeyedPath = exited?.code == null ? undefined : obeyed[exited.code - obeyedExit];
    if (obeyedPath === undefined) throw error;
    throw new HarnessFailed(obeyedMessage(profile, obeyedPath), { cause: error });
  }
}

async function spawned(sandbox: Sandbox, { argv, env }: AgentLaunchPlan, profile: Profile): Promise<Process> {
  const command: Command = { argv, env, role: "agent" };
  try {
    return await sandbox.spawn(command);
  } catch (error) {
    if (error instanceof AmbitError) throw error;
    throw new HarnessFailed(`${profile.title} could not be started from ${argv[0]}.`, { cause: error });
  }
}

function throwIfStopped(signal: AbortSignal, profile: Profile): void {
  if (signal.aborted) throw stopReason(signal, profile);
}

/** @throws the signal's reason as soon as it aborts */
export async function unlessStopped<Result>(
  signal: AbortSignal,
  profile: Profile,
  start: () => Promise<Result>,
): Promise<Result> {
  const stopped = whenStopped(signal, profile);
  try {
    return await Promise.race([start(), stopped.promise]);
  } finally {
    stopped.forget();
  }
}

function whenStopped(signal: AbortSignal, profile: Profile) {
  let forget = () => {};
  const promise = new Promise<never>((_, reject) => {
    const stop = () => reject(stopReason(signal, profile));
    signal.addEventListener("abort", stop, { once: true });
    forget = () => signal.removeEventListener("abort", stop);
    if (signal.aborted) stop();
  });
  // Rejected without a handler if the abort comes right after the end of the start.
  promise.catch(() => undefined);
  return { promise, forget };
}

function stopReason(signal: AbortSignal, profile: Profile): Error {
  const { reason } = signal;
  if (reason instanceof AmbitError) return reason;
  return new HarnessFailed(`${profile.title} was stopped while it started.`, { cause: reason });
}

/** Everything that is decided before the agent's process exists. */
export interface AgentLaunchPlan {
  readonly argv: Command["argv"];
  /** What the agent would obey in its workspace. If one is there, `argv` exits with `obeyedExit` and its index. */
  readonly obeyed: readonly ObeyedPath[];
  /** The complete environment: nothing is inherited from the runner. */
  readonly env: Readonly<Record<string, string>>;
  /** Files of its home, which are written before the start. */
  readonly files: readonly FileEntry[];
  /** Files of its workspace, which it reads with its conversation. */
  readonly workspaceFiles: readonly FileEntry[];
  /** The chosen model; empty for an agent without one. */
  readonly model: string;
  /** Whether the model must be one that the agent lists. */
  readonly requiresListed: boolean;
  /** `_meta` of the session's requests; empty for none. */
  readonly sessionMeta: JsonObject;
  readonly session: SessionSettings;
  /** The value of the session's option for the reasoning effort. Default: the agent's own. */
  readonly effort?: string;
}
