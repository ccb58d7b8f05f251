import { setTimeout as delay } from "node:timers/promises";
import {
  type Agent,
  AmbitError,
  type Command,
  type Evidence,
  type FileEntry,
  type HarnessCapabilities,
  HarnessFailed,
  type JsonObject,
  type LateStart,
  type Log,
  type Process,
  type PublishedServer,
  resultWithin,
  type Sandbox,
  type StartScope,
  unlessAborted,
} from "@ambit/core/plugin";
import { obeyedExit, obeyedMessage } from "../profiles/handoffs.js";
import type { ObeyedPath, Profile, SessionSettings } from "../profiles/profile.js";
import { AcpAgent, closeAgent, type SpawnedAgent } from "./acp-agent.js";
import {
  type AgentAbilities,
  type AgentSession,
  effortOption,
  modelOf,
  modelsOffered,
  readInitialize,
  readNewSession,
  readRestoredSession,
} from "./answers.js";
import type { AcpConnection } from "./connection.js";
import { shortLine } from "./json-reading.js";
import type { DriverLimits, MessageIntake } from "./limits.js";
import { cancelled, cancelledElicitation } from "./questions.js";

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

/** Versions of an agent. */
export interface AgentVersions {
  /** The version of the program on the runner. Absent: the program is the image's, and reports its own. */
  readonly installed?: string | undefined;
  /** The one that this plugin was tested with. */
  readonly tested: string;
}

export interface BeginAgentOptions {
  readonly profile: Profile;
  readonly launch: AgentLaunchPlan;
  readonly limits: DriverLimits;
  readonly intake: MessageIntake;
}

export interface StartAgentOptions extends BeginAgentOptions {
  /** Absent for an agent that is part of the plugin. */
  readonly versions?: AgentVersions | undefined;
  /** The agent, if it was started ahead with the same launch. Default: it is started now. */
  readonly begun?: BegunAgent | undefined;
  /** Whether the agent's program was replaced since the start. */
  isOutdated(): boolean;
}

/** The part of a start that an agent needs before it has a conversation. */
export interface BeginScope {
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  readonly log: Log;
  /** Called once it has been spawned: from then on it has to be closed. */
  onSpawned?(agent: SpawnedAgent): void;
}

/** An agent's process that has answered `initialize`, and nothing else. */
export interface BegunAgent {
  readonly process: Process;
  readonly connection: AcpConnection;
  readonly abilities: AgentAbilities;
}

/** An agent that has been started, with what its conversation depends on. */
interface StartedAgent extends BegunAgent, Pick<StartAgentOptions, "profile" | "versions" | "limits"> {
  /** Whether it was started before its run began. */
  readonly isAhead: boolean;
  isOutdated(): boolean;
}

/** Starts the agent in the scope's sandbox and opens its conversation. What was started is closed with the scope. */
export async function startAgent(options: StartAgentOptions, scope: StartScope): Promise<Agent> {
  const { profile, versions, launch, limits, isOutdated } = options;
  let close = () => Promise.resolve();
  scope.defer(() => close());
  const { sandbox, signal, log } = scope;
  const onSpawned = (spawned: SpawnedAgent) => {
    close = () => closeAgent(spawned, false);
    scope.explain?.(() => lateStart(spawned));
  };
  if (launch.workspaceFiles.length > 0) await sandbox.writeFiles(launch.workspaceFiles);
  const { begun = await beginAgent(options, { sandbox, signal, log, onSpawned }) } = options;
  const started = { profile, versions, limits, isOutdated, isAhead: options.begun !== undefined, ...begun };
  onSpawned(started);
  const agent = await closedOnFailure(started, launch, signal, () =>
    openConversation(started, launch, scope),
  );
  close = () => agent.close();
  return agent;
}

/** What an agent's output says about a start that takes too long: one that prints other things may not speak ACP at all. */
function lateStart({ connection, profile }: SpawnedAgent): LateStart | undefined {
  const { speaksAcp, noise } = connection;
  if (noise === undefined) return undefined;
  if (speaksAcp) return { sentence: noise, retryable: true };
  return { sentence: `No message of ACP came from ${profile.title}. ${noise}`, retryable: false };
}

/** Spawns the agent in the scope's sandbox and connects to it. What was spawned is closed if that fails. */
export async function beginAgent(
  { profile, launch, limits, intake }: BeginAgentOptions,
  { sandbox, signal, log, onSpawned }: BeginScope,
): Promise<BegunAgent> {
  if (signal.aborted) throw stopReason(signal, profile);
  await sandbox.writeFiles(launch.files);
  // The ACP SDK takes tens of milliseconds to load, so it is loaded while the agent starts, not with the server.
  const [process, { AcpConnection }] = await Promise.all([
    spawnAgent(sandbox, launch, profile),
    import("./connection.js"),
  ]);
  const { title } = profile;
  const connection = new AcpConnection({ process, title, intake, log });
  const spawned = { profile, process, connection, limits };
  onSpawned?.(spawned);
  const parameters = {
    // Exactly this version: when offered more, some agents answer with an incompatible draft of version 2.
    protocolVersion: 1,
    clientCapabilities: { ...profile.clientCapabilities, elicitation: { form: {}, url: {} } },
    clientInfo: { name: "ambit", title: "Ambit", version: "0.1.0" },
  };
  return await closedOnFailure(spawned, launch, signal, async () => {
    const response = await connection.request("initialize", parameters, "initialize", signal);
    return { process, connection, abilities: readInitialize(response, title) };
  });
}

async function spawnAgent(
  sandbox: Sandbox,
  { argv, env }: AgentLaunchPlan,
  { title }: Profile,
): Promise<Process> {
  try {
    return await sandbox.spawn({ argv, env, role: "agent" });
  } catch (error) {
    if (error instanceof AmbitError) throw error;
    throw new HarnessFailed(`${title} could not be started from ${argv[0]}.`, { cause: error });
  }
}

/** Milliseconds until the exit of an agent is known that has closed its output. */
const exitSeenMs = 1_000;

/**
 * The step's result. If the step fails, or the signal aborts first, the agent is closed.
 * @throws HarnessFailed of an agent that didn't start because of a path in its workspace, which it would obey: it has exited
 * with the code that stands for that path.
 */
async function closedOnFailure<Result>(
  agent: SpawnedAgent,
  { obeyed }: Pick<AgentLaunchPlan, "obeyed">,
  signal: AbortSignal,
  step: () => Promise<Result>,
): Promise<Result> {
  const { profile, process, connection } = agent;
  try {
    return await unlessAborted(signal, step);
  } catch (thrown) {
    const error = signal.aborted && thrown === signal.reason ? stopReason(signal, profile) : thrown;
    const exited = connection.closed ? await resultWithin(process.exit, exitSeenMs) : undefined;
    await closeAgent(agent, false);
    const obeyedPath = exited?.code == null ? undefined : obeyed[exited.code - obeyedExit];
    if (obeyedPath === undefined) throw error;
    throw new HarnessFailed(obeyedMessage(profile, obeyedPath), { cause: error });
  }
}

function stopReason({ reason }: AbortSignal, { title }: Profile): Error {
  if (reason instanceof AmbitError) return reason;
  return new HarnessFailed(`${title} was stopped while it started.`, { cause: reason });
}

/** Opens the conversation of a run: from here on, the agent belongs to that run's session. */
async function openConversation(
  started: StartedAgent,
  launch: AgentLaunchPlan,
  scope: StartScope,
): Promise<AcpAgent> {
  const { profile, connection, abilities, limits } = started;
  const { servers, sandbox, signal, log } = scope;
  const capabilities = harnessCapabilities(abilities, profile);
  const offered = profile.toolDelivery === "prepared" ? [] : servers;
  if (offered.length > 0 && !capabilities.mcpTools) {
    throw new HarnessFailed(
      `${profile.title} can't receive tools: it doesn't support MCP servers over HTTP. Run the request on another harness, or remove its tools.`,
    );
  }
  const parameters = {
    cwd: sandbox.workspace,
    mcpServers: offered.map(({ name, url, headers }) => ({
      type: "http",
      name,
      url,
      headers: Object.entries(headers).map(([header, value]) => ({ name: header, value })),
    })),
    ...(Object.keys(launch.sessionMeta).length === 0 ? {} : { _meta: launch.sessionMeta }),
  };
  const restored = await restoreConversation(started, parameters, scope);
  const session =
    restored ??
    readNewSession(
      await connection.request("session/new", parameters, "its session's start", signal),
      profile.title,
    );
  const models = modelsOffered(session);
  requireModel(profile, launch, models);
  await applySettings(connection, session.sessionId, launch.session, signal);
  await applyEffort(started, session, launch.effort, signal);
  connection.state.begin();
  if (profile.quirks.promptsBeforeTools) await toolsListed(offered, limits.listedMs, signal);
  const model = launch.session.model ?? modelOf(session) ?? (launch.model === "" ? undefined : launch.model);
  return new AcpAgent({
    ...started,
    conversation: session.sessionId,
    history: restored === undefined ? "new" : "loaded",
    capabilities,
    versions: {
      ...versionEvidence(started.versions, abilities.version),
      ...(started.isAhead ? { startedAhead: true } : {}),
    },
    model,
    models,
    servers: servers.map(({ name }) => name),
    // Without a session name, the home that would store it is removed with the run.
    isResumable: (scope.request.sessionId ?? "") !== "",
    toolsListed: () => servers.every((server) => server.listed()),
    log,
  });
}

/** What `initialize` reported, completed by the profile. */
function harnessCapabilities(abilities: AgentAbilities, profile: Profile): HarnessCapabilities {
  return {
    textMessages: true,
    images: abilities.prompt.image,
    fileAttachments: abilities.prompt.embeddedContext,
    mcpTools: profile.toolDelivery === "prepared" || abilities.mcpHttp,
    toolCalls: true,
    reasoning: profile.reports.reasoning,
    planMode: profile.reports.plans,
    permissions: true,
    usage: profile.reports.usage,
    streamingDeltas: true,
    sessionLifecycle: abilities.restoreMethod !== undefined,
  };
}

/** The versions on the receipt, which has a `testedVersion` only if that is another one. Pure. */
function versionEvidence(versions: AgentVersions | undefined, reported: string | undefined): Evidence {
  if (versions === undefined) return {};
  const version = versions.installed ?? reported ?? "unknown";
  return version === versions.tested ? { version } : { version, testedVersion: versions.tested };
}

/** Resumes the earlier conversation of the scope; undefined if there is none, or the agent has lost it. */
async function restoreConversation(
  { connection, profile, abilities: { restoreMethod: method } }: StartedAgent,
  parameters: object,
  { resume, signal, log }: StartScope,
): Promise<AgentSession | undefined> {
  if (resume === undefined || method === undefined) return undefined;
  try {
    // Replayed messages are discarded: no turn is open, and the caller has the history already.
    const answer = await connection.request(
      method,
      { ...parameters, sessionId: resume },
      "its session's return",
      signal,
    );
    const session = readRestoredSession(answer, resume, profile.title);
    if (method === "session/load" && profile.quirks.replaysLate) await replayOver(connection, resume);
    return session;
  } catch (error) {
    if (connection.closed || signal.aborted) throw error;
    log.info({ agent: profile.title, error }, "the earlier conversation doesn't exist: starting a new one");
    return undefined;
  }
}

/**
 * Waits until the replay has arrived completely. The agent writes its messages in order, each update as soon as the
 * last is sent, so a response without an update before it shows that none is left.
 */
async function replayOver(connection: AcpConnection, sessionId: string): Promise<void> {
  let updates = 0;
  connection.receive({
    update: (params) => {
      if (params.sessionId === sessionId) updates += 1;
      connection.state.note(params.update);
    },
    permission: async () => cancelled,
    elicitation: async () => cancelledElicitation,
    room: () => undefined,
  });
  try {
    for (let before = -1; before !== updates; ) {
      before = updates;
      await connection.roundTrip();
    }
  } finally {
    connection.receive(undefined);
  }
}

/** @throws HarnessFailed for a model that the agent, at its provider's own endpoint, doesn't have. */
function requireModel(
  { title }: Profile,
  { model, requiresListed }: AgentLaunchPlan,
  offered: readonly string[],
): void {
  if (!requiresListed || offered.length === 0) return;
  if (offered.some((id) => id === model || id.endsWith(`/${model}`))) return;
  throw new HarnessFailed(`${title} doesn't know the model '${model}': it offers ${listed(offered)}.`);
}

/** What an error names of an agent's models and efforts, and characters of each. */
const [maxNamed, maxNameLength] = [50, 200];

/** What an agent says that it offers, fit for an error. */
function listed(offered: readonly string[]): string {
  const names = offered.slice(0, maxNamed).map((name) => shortLine(name, maxNameLength));
  const more = offered.length - names.length;
  return [...names, ...(more > 0 ? [`${more} more`] : [])].join(", ");
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
  { connection, profile }: StartedAgent,
  session: AgentSession,
  effort: string | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (effort === undefined) return;
  const option = effortOption(session);
  if (option?.values.includes(effort) !== true) {
    const offered = option === undefined ? "none" : listed(option.values);
    throw new HarnessFailed(
      `${profile.title} doesn't offer the reasoning effort '${effort}' for this model, but ${offered}: change reasoningEffort, or leave it out.`,
    );
  }
  const params = { sessionId: session.sessionId, configId: option.id, value: effort };
  await connection.request("session/set_config_option", params, "its reasoning effort", signal);
}

/** Milliseconds between two checks. */
const pollMs = 5;

/**
 * Resolves when the agent has listed every server's tools, or the time is over: some agents send the first prompt to
 * their model before they have listed the tools, and the model then sees none.
 */
export async function toolsListed(
  servers: readonly PublishedServer[],
  limitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const end = Date.now() + limitMs;
  while (!servers.every((server) => server.listed()) && Date.now() < end && !signal.aborted) {
    await delay(pollMs);
  }
}
