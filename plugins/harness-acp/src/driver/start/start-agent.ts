import { setTimeout as delay } from "node:timers/promises";
import {
  type Agent,
  type Evidence,
  type HarnessCapabilities,
  HarnessFailed,
  type Log,
  type PublishedServer,
  type StartScope,
} from "@ambit/core/plugin";
import type { Profile, SessionSettings } from "../../profiles/profile.js";
import { AcpAgent, closeAgent } from "../acp-agent.js";
import { cancelledElicitation } from "../calls/elicitation.js";
import { cancelled } from "../calls/permission-options.js";
import { shortLine } from "../json-reading.js";
import type { DriverLimits } from "../limits.js";
import type { PromptAbilities } from "../turn/prompt-content.js";
import {
  type AgentAbilities,
  effortOption,
  modelOf,
  modelsOffered,
  readNewSession,
  readRestoredSession,
} from "../wire/answers.js";
import type { AcpConnection } from "../wire/connection.js";
import {
  type AgentLaunchPlan,
  type BeginAgentOptions,
  type BegunAgent,
  beginAgent,
  orExplained,
  unlessStopped,
  whyLate,
} from "./begin-agent.js";

export interface StartAgentOptions extends BeginAgentOptions {
  /** Absent for an agent that is part of the plugin. */
  readonly versions?: AgentVersions | undefined;
  /** The agent, if it was started ahead with the same launch. Default: it is started now. */
  readonly begun?: BegunAgent | undefined;
  /** Whether its program was replaced since. */
  isOutdated(): boolean;
}

/** Starts the agent in the scope's sandbox and opens its conversation. What was started is closed with the scope. */
export async function startAgent(options: StartAgentOptions, scope: StartScope): Promise<Agent> {
  const { profile, versions, launch, limits, isOutdated } = options;
  let close = () => Promise.resolve();
  scope.defer(() => close());
  const { sandbox, signal, log } = scope;
  const onSpawned = (spawned: Parameters<typeof closeAgent>[0]) => {
    close = () => closeAgent(spawned, false);
    scope.explain?.(() => whyLate(spawned));
  };
  if (launch.workspaceFiles.length > 0) await sandbox.writeFiles(launch.workspaceFiles);
  const { begun = await beginAgent(options, { sandbox, signal, log, onSpawned }) } = options;
  const started = { profile, versions, limits, isOutdated, isAhead: options.begun !== undefined, ...begun };
  onSpawned(started);
  const agent = await orExplained(started, launch, () =>
    unlessStopped(signal, profile, () => openConversation(started, launch, scope)),
  );
  close = () => agent.close();
  return agent;
}

/** What an error names of an agent's models and efforts, and characters of each. */
const [maxNamed, maxNameLength] = [50, 200];

/** Versions of an agent. */
export interface AgentVersions {
  /** Of its program on the runner. Absent: the program is the image's, and reports it itself. */
  readonly installed?: string | undefined;
  /** The one that this plugin was tested with. */
  readonly tested: string;
}

/** An agent that has been started, with what its conversation depends on. */
interface Started extends BegunAgent {
  readonly profile: Profile;
  /** Absent for an agent that is part of the plugin. */
  readonly versions?: AgentVersions | undefined;
  readonly limits: DriverLimits;
  /** Whether it was started before its run began. */
  readonly isAhead: boolean;
  /** Whether its program was replaced since. */
  isOutdated(): boolean;
}

/** Opens the conversation of a run: from here on, the agent belongs to that run's session. */
export async function openConversation(
  started: Started,
  launch: AgentLaunchPlan,
  scope: StartScope,
): Promise<AcpAgent> {
  const { profile, connection, abilities: reported, limits } = started;
  const { servers, sandbox, signal, log } = scope;
  const capabilities = harnessCapabilities(reported, profile);
  const offered = profile.toolDelivery === "prepared" ? [] : servers;
  if (offered.length > 0 && !capabilities.mcpTools) {
    throw new HarnessFailed(
      `${profile.title} can't receive tools: it doesn't support MCP servers over HTTP. Run the request on another harness, or remove its tools.`,
    );
  }
  const session = {
    cwd: sandbox.workspace,
    mcpServers: offered.map(({ name, url, headers }) => ({
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
    method: restoreMethod(reported),
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
  if (profile.quirks.promptsBeforeTools) await toolsListed(offered, limits.listedMs, signal);
  const stated = launch.session.model ?? modelOf(opened) ?? (launch.model === "" ? undefined : launch.model);
  return new AcpAgent({
    ...started,
    conversation: opened.sessionId,
    history: restored === undefined ? "new" : "loaded",
    capabilities,
    versions: {
      ...versionEvidence(started.versions, reported.agentInfo?.version),
      ...(started.isAhead ? { startedAhead: true } : {}),
    },
    abilities: promptAbilities(reported),
    closesSessions: closesSessions(reported),
    takesSteering: takesSteering(reported),
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
  throw new HarnessFailed(`${title} doesn't know the model '${model}': it offers ${named(offered)}.`);
}

/** What an agent says that it offers, fit for an error. */
function named(offered: readonly string[]): string {
  const first = offered.slice(0, maxNamed).map((one) => shortLine(one, maxNameLength));
  const more = offered.length - first.length;
  return [...first, ...(more > 0 ? [`${more} more`] : [])].join(", ");
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
    const offered = option === undefined ? "none" : named(option.values);
    throw new HarnessFailed(
      `${profile.title} doesn't offer the reasoning effort '${effort}' for this model, but ${offered}: change reasoningEffort, or leave it out.`,
    );
  }
  const params = { sessionId: opened.sessionId, configId: option.id, value: effort };
  await connection.request("session/set_config_option", params, "its reasoning effort", signal);
}

function promptAbilities(abilities: AgentAbilities): PromptAbilities {
  const prompt = abilities.agentCapabilities?.promptCapabilities;
  return {
    image: prompt?.image ?? false,
    audio: prompt?.audio ?? false,
    embeddedContext: prompt?.embeddedContext ?? false,
  };
}

/** How an earlier conversation is resumed. `resume` is preferred, since it replays nothing. */
function restoreMethod(abilities: AgentAbilities): "session/resume" | "session/load" | undefined {
  const agent = abilities.agentCapabilities;
  if (isAnnounced(agent?.sessionCapabilities?.resume)) return "session/resume";
  return agent?.loadSession === true ? "session/load" : undefined;
}

/** Whether it wants `session/close` at the end of a session. */
function closesSessions({ agentCapabilities }: AgentAbilities): boolean {
  return isAnnounced(agentCapabilities?.sessionCapabilities?.close);
}

/** A capability of ACP is an object, usually an empty one. */
function isAnnounced(capability: unknown): boolean {
  return capability !== undefined && capability !== null && capability !== false;
}

/** Whether it takes a message of the user in mid-turn. */
function takesSteering({ _meta }: AgentAbilities): boolean {
  return _meta?.steering?.supported ?? false;
}

/** What `initialize` reported, completed by the profile. */
function harnessCapabilities(abilities: AgentAbilities, profile: Profile): HarnessCapabilities {
  const prompt = promptAbilities(abilities);
  return {
    textMessages: true,
    images: prompt.image,
    fileAttachments: prompt.embeddedContext,
    mcpTools:
      profile.toolDelivery === "prepared" || (abilities.agentCapabilities?.mcpCapabilities?.http ?? false),
    toolCalls: true,
    reasoning: profile.reports.reasoning,
    planMode: profile.reports.plans,
    permissions: true,
    usage: profile.reports.usage,
    streamingDeltas: true,
    sessionLifecycle: restoreMethod(abilities) !== undefined,
  };
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

export interface Restoration {
  readonly connection: AcpConnection;
  readonly profile: Profile;
  /** The parameters of `session/new`. */
  readonly session: object;
  /** The conversation to resume. */
  readonly resume: string | undefined;
  readonly method: "session/resume" | "session/load" | undefined;
  /** Aborts when the run is over before its agent has started. */
  readonly signal: AbortSignal;
  readonly log: Log;
}

/** Resumes the conversation that `resume` names; undefined if there is none, or the agent has lost it. */
export async function restoreConversation(restoration: Restoration) {
  const { connection, profile, session, resume, method, signal, log } = restoration;
  if (resume === undefined || method === undefined) return undefined;
  try {
    // Replayed messages are discarded: no turn is open, and the caller has the history already.
    const answer = await connection.request(
      method,
      { ...session, sessionId: resume },
      "its session's return",
      signal,
    );
    const restored = { ...readRestoredSession(answer, profile.title), sessionId: resume };
    if (method === "session/load" && profile.quirks.replaysLate) await replayOver(connection, resume);
    return restored;
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
