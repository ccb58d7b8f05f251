import {
  type Agent,
  AmbitError,
  type Command,
  type Evidence,
  type FileEntry,
  HarnessFailed,
  type JsonObject,
  type Process,
  type StartScope,
} from "@ambit/core/plugin";
import { obeyedExit, obeyedMessage } from "../../profiles/handoffs.js";
import type { ObeyedPath, Profile, SessionSettings } from "../../profiles/profile.js";
import { AcpAgent, closeAgent } from "../acp-agent.js";
import type { DriverLimits } from "../limits.js";
import { effortOption, modelOf, modelsOffered, readInitialize, readNewSession } from "../wire/answers.js";
import type { AcpConnection } from "../wire/connection.js";
import { settledWithin } from "../wire/failures.js";
import type { MessageIntake } from "../wire/message-intake.js";
import { toolsListed } from "./await-tools.js";
import { closesSessions, harnessCapabilities, promptAbilities, restoreMethod } from "./capabilities.js";
import { restoreConversation } from "./restore-conversation.js";

/** Everything that is decided before the agent's process exists. */
export interface AgentLaunchPlan {
  readonly argv: Command["argv"];
  /** What the agent would obey in its workspace. If one is there, `argv` exits with {@link obeyedExit} and its index. */
  readonly obeyed: readonly ObeyedPath[];
  /** The complete environment: nothing is inherited from the runner. */
  readonly env: Readonly<Record<string, string>>;
  /** Files that are written before the start. */
  readonly files: readonly FileEntry[];
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

/** Versions of an agent. */
export interface AgentVersions {
  /** Of its program on the runner. Absent: the program is the image's, and reports it itself. */
  readonly installed?: string | undefined;
  /** The one that this plugin was tested with. */
  readonly tested: string;
}

export interface StartAgentOptions {
  readonly profile: Profile;
  /** Absent for an agent that is part of the plugin. */
  readonly versions?: AgentVersions | undefined;
  readonly launch: AgentLaunchPlan;
  readonly limits: DriverLimits;
  readonly intake: MessageIntake;
}

/** Spawns the agent in the scope's sandbox and opens its conversation. What was spawned is closed with the scope. */
export async function startAgent(
  { profile, versions, launch, limits, intake }: StartAgentOptions,
  scope: StartScope,
): Promise<Agent> {
  const { sandbox, signal, log } = scope;
  throwIfStopped(signal, profile);
  await sandbox.writeFiles(launch.files);
  // The ACP SDK takes tens of milliseconds to load, so it is loaded while the agent starts, not with the server.
  const [process, { AcpConnection }] = await Promise.all([
    spawned(scope, launch, profile),
    import("../wire/connection.js"),
  ]);
  const connection = new AcpConnection({ process, title: profile.title, intake, log });
  const started = { profile, versions, process, connection, limits };
  let close = () => closeAgent(started, false);
  scope.defer(() => close());

  const stopped = whenStopped(signal, profile);
  try {
    const agent = await Promise.race([openConversation(started, launch, scope), stopped.promise]);
    close = () => agent.close();
    return agent;
  } catch (error) {
    const exited = connection.closed ? await settledWithin(process.exit, exitSeenMs) : undefined;
    await close();
    const obeyed = exited?.code == null ? undefined : launch.obeyed[exited.code - obeyedExit];
    if (obeyed === undefined) throw error;
    throw new HarnessFailed(obeyedMessage(profile, obeyed), { cause: error });
  } finally {
    stopped.forget();
  }
}

/** Milliseconds until the exit of an agent is known that has closed its output. */
const exitSeenMs = 1_000;

async function spawned(
  { sandbox }: StartScope,
  { argv, env }: AgentLaunchPlan,
  profile: Profile,
): Promise<Process> {
  try {
    return await sandbox.spawn({ argv, env, role: "agent" });
  } catch (error) {
    if (error instanceof AmbitError) throw error;
    throw new HarnessFailed(`${profile.title} could not be started from ${argv[0]}.`, { cause: error });
  }
}

type Started = Omit<StartAgentOptions, "launch" | "intake"> & {
  readonly process: Process;
  readonly connection: AcpConnection;
};

async function openConversation(
  started: Started,
  launch: AgentLaunchPlan,
  scope: StartScope,
): Promise<AcpAgent> {
  const { profile, connection, limits } = started;
  const { servers, sandbox, signal, log } = scope;
  const abilities = readInitialize(
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
  );
  const capabilities = harnessCapabilities(abilities, profile);
  const given = profile.toolDelivery === "prepared" ? [] : servers;
  if (given.length > 0 && !capabilities.mcpTools) {
    throw new HarnessFailed(
      `${profile.title} can't receive tools: it takes no MCP servers over HTTP. Run the request on another harness, or remove its tools.`,
    );
  }
  const session = {
    cwd: sandbox.workspace,
    mcpServers: given.map(({ name, url, headers }) => ({
      type: "http",
      name,
      url,
      headers: Object.entries(headers).map(([header, value]) => ({ name: header, value })),
    })),
    ...(Object.keys(launch.sessionMeta).length === 0 ? {} : { _meta: launch.sessionMeta }),
  };
  const restored = await restoreConversation({
    connection,
    profile,
    session,
    resume: scope.resume,
    method: restoreMethod(abilities),
    signal,
    log,
  });
  const opened =
    restored ??
    readNewSession(
      await connection.request("session/new", session, "its session's start", signal),
      profile.title,
    );
  const models = modelsOffered(opened);
  requireModel(profile, launch, models);
  await applySettings(connection, opened.sessionId, launch.session, signal);
  await applyEffort(started, opened, launch.effort, signal);
  connection.state.begin();
  if (profile.quirks.promptsBeforeTools) await toolsListed(given, limits.listedMs, signal);
  const stated = launch.session.model ?? modelOf(opened) ?? (launch.model === "" ? undefined : launch.model);
  return new AcpAgent({
    ...started,
    conversation: opened.sessionId,
    history: restored === undefined ? "new" : "loaded",
    capabilities,
    versions: versionEvidence(started.versions, abilities.agentInfo?.version),
    abilities: promptAbilities(abilities),
    closesSessions: closesSessions(abilities),
    model: stated,
    models,
    servers: servers.map(({ name }) => name),
    // Without a session name, the home that would store it is removed with the run.
    isResumable: (scope.request.sessionId ?? "") !== "",
    toolsListed: () => servers.every((server) => server.listed()),
    log,
  });
}

/** For the receipt: `testedVersion` only if it is another one. Pure. */
function versionEvidence(versions: AgentVersions | undefined, reported: string | undefined): Evidence {
  if (versions === undefined) return {};
  const version = versions.installed ?? reported ?? "unknown";
  return version === versions.tested ? { version } : { version, testedVersion: versions.tested };
}

/** @throws HarnessFailed for a model that the agent, at its provider's own endpoint, doesn't have. */
function requireModel(
  { title }: Profile,
  { model, requiresListed }: AgentLaunchPlan,
  offered: readonly string[],
): void {
  if (!requiresListed || offered.length === 0) return;
  if (offered.some((id) => id === model || id.endsWith(`/${model}`))) return;
  throw new HarnessFailed(`${title} doesn't know the model '${model}': it offers ${offered.join(", ")}.`);
}

async function applySettings(
  connection: AcpConnection,
  sessionId: string,
  { mode, model, options = {} }: SessionSettings,
  signal: AbortSignal,
): Promise<void> {
  const set = (method: string, params: object) =>
    connection.request(method, { sessionId, ...params }, `${method} ${JSON.stringify(params)}`, signal);
  if (mode !== undefined) await set("session/set_mode", { modeId: mode });
  if (model !== undefined) await set("session/set_model", { modelId: model });
  for (const [configId, value] of Object.entries(options)) {
    const kind = typeof value === "boolean" ? { type: "boolean" } : {};
    await set("session/set_config_option", { configId, ...kind, value });
  }
}

/** @throws HarnessFailed for an effort that the agent doesn't offer for this model. */
async function applyEffort(
  { connection, profile }: Started,
  opened: ReturnType<typeof readNewSession>,
  effort: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (effort === undefined) return;
  const option = effortOption(opened);
  if (option?.values.includes(effort) !== true) {
    const offered = option === undefined ? "none" : option.values.join(", ");
    throw new HarnessFailed(
      `${profile.title} doesn't offer the reasoning effort '${effort}' for this model, but ${offered}: change reasoningEffort, or leave it out.`,
    );
  }
  const params = { sessionId: opened.sessionId, configId: option.id, value: effort };
  await connection.request("session/set_config_option", params, "its reasoning effort", signal);
}

function throwIfStopped(signal: AbortSignal, profile: Profile): void {
  if (signal.aborted) throw stopReason(signal, profile);
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
