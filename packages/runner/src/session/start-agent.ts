/** Step 5: the agent of a run, kept or new, and what to say where limits are too tight for it. */

import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { callPlugin, HarnessFailed, pluginReturns } from "@ambit/core";
import { hasSetup, type RunRequest, type Warning } from "@ambit/core/contract";
import {
  type LateStart,
  type LimitHits,
  type Log,
  type ResourceLimits,
  type Sandbox,
  unlessAborted,
} from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { CallRouter } from "../call/run-calls.js";
import { RunTools } from "../call/run-tools.js";
import { RunEvents } from "../events/run-events.js";
import { canonicalJson } from "../json-values.js";
import { OwnedScope } from "../lifetime/scope.js";
import type { RunLimits } from "../limits.js";
import type { PermissionCeiling } from "../operator.js";
import { continues, type UserMessages, userMessagesAfter } from "../parse/messages.js";
import { type PlannedRun, type RunnerServices, tokens } from "../tokens.js";
import { AgentPool } from "./agent-pool.js";
import { ModelRouter, openModelRoute, publishTools, type StartedAgent, serverNamesOf } from "./publish.js";
import type { Session } from "./session.js";

/** The agent of a run. */
interface RunAgent {
  readonly started: StartedAgent;
  /** Whether it was kept from an earlier run. */
  readonly warm: boolean;
  /** Whether the run was to continue a conversation of earlier ones. */
  readonly continued: boolean;
  /** The user's messages that it knows once it got this turn's. */
  readonly userMessages: UserMessages;
}

/** Steps 4 and 5. */
@injectable()
export class AgentStarter {
  #explanation: () => LateStart | undefined = () => undefined;

  constructor(
    @inject(tokens.run) private readonly run: PlannedRun,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(tokens.limits) private readonly limits: RunLimits,
    @inject(tokens.permissionCeiling) private readonly ceiling: PermissionCeiling,
    @inject(tokens.log) private readonly log: Log,
    @inject(RunEvents) private readonly events: RunEvents,
    @inject(RunTools) private readonly tools: RunTools,
    @inject(tokens.services) private readonly services: RunnerServices,
    @inject(AgentPool) private readonly pool: AgentPool,
  ) {}

  /** The session of an agent that was started ahead, exactly as this run's would be. @throws the run's reason */
  async claim(): Promise<Session | undefined> {
    const { request, plan } = this.run;
    // What was prepared goes into its home too, where a started agent has its own files.
    if (hasSetup(request.environment)) return undefined;
    const start = {
      request,
      plan,
      deniesTools: this.#deniesTools,
      serverNames: serverNamesOf(request, plan),
    };
    return await this.pool.claim(start, this.scope.signal);
  }

  /**
   * The session's agent, when it was started with the same tools and settings and remembers the same conversation; else a
   * new one. If the caller edited the user's earlier messages, or asks for a new conversation, the stored one isn't loaded.
   */
  async start(session: Session): Promise<RunAgent> {
    const { request } = this.run;
    const { wholeHistory } = this.services;
    const fingerprint = agentFingerprintOf(request);
    const earlier = session.agent;
    const continued = session.userMessages.length > 0;
    const isNew = request.conversation === "new";
    const isSame = !isNew && continues(request, session.userMessages, wholeHistory);
    if (!isSame) session.conversation = undefined;
    const before = isNew ? [] : session.userMessages;
    const userMessages = userMessagesAfter(request, before, wholeHistory);
    const canGoOn = earlier !== undefined && !earlier.agent.ended() && earlier.agent.isOutdated?.() !== true;
    if (isSame && canGoOn && earlier.fingerprint === fingerprint)
      return { started: earlier, warm: true, continued, userMessages };
    session.agent = undefined;
    await earlier?.scope.close();
    const started = await this.#startNew(session, fingerprint);
    session.agent = started;
    return { started, warm: false, continued: continued && !isNew, userMessages };
  }

  /** What its harness knows of a start that takes too long. */
  whyLate(): LateStart | undefined {
    return this.#explanation();
  }

  get #deniesTools(): boolean {
    return this.ceiling === true || this.ceiling.length > 0;
  }

  async #startNew(session: Session, fingerprint: string): Promise<StartedAgent> {
    const { run, limits, log, events } = this;
    const { request, plan } = run;
    const harness = plan.harness.actor;
    const { ahead } = session;
    session.ahead = undefined;
    // Follows this run until the agent has started; then it belongs to the session.
    const scope = new OwnedScope(log, limits.closeMs, this.scope.signal);
    session.scope.defer(() => scope.close());
    try {
      // 4 publish: the tools, behind permissions, and the route to the model
      const router = new CallRouter();
      const { servers, toolNames } = await unlessAborted(this.scope.signal, () =>
        publishTools({ run, log, events, secrets: this.tools.secrets }, session.sandbox, scope, router),
      );
      const modelRouter = new ModelRouter();
      const model = await unlessAborted(this.scope.signal, () =>
        openModelRoute(plan, log, ahead?.way ?? session.sandbox, scope, modelRouter),
      );

      // 5 start: the agent, with its stored conversation if there is one
      const { conversation } = session;
      const agent = await unlessAborted(this.scope.signal, async () => {
        const { resources } = plan.boundary;
        const begin = () =>
          harness.start({
            signal: scope.signal,
            defer: (close) => scope.defer(close),
            sandbox: session.sandbox,
            servers,
            request,
            deniesTools: this.#deniesTools,
            model,
            resume: conversation?.harness === harness.id ? conversation.id : undefined,
            prepared: ahead?.agent,
            explain: (why) => {
              this.#explanation = why;
            },
            log,
          });
        const begun = await unlessStarved(session.sandbox, resources, () =>
          callPlugin(harness, "start", pluginReturns.agent, begin).catch((error: unknown) => {
            throw namingLimits(error, resources);
          }),
        );
        scope.defer(() => begun.close());
        return begun;
      });
      scope.detach();
      return { agent, servers, router, modelRouter, toolNames, fingerprint, scope };
    } catch (error) {
      await scope.close();
      throw error;
    }
  }
}

/** Closes an agent that can't be given another turn. */
export async function dismiss(session: Session, started: StartedAgent): Promise<void> {
  if (session.agent === started) session.agent = undefined;
  await started.scope.close();
}

/** A digest, because what an agent is started with holds credentials, and a session outlives its request. */
function agentFingerprintOf(request: RunRequest): string {
  const { customTools, mcpServers, model, reasoningEffort, modelConnection, permissions, harnessMode } =
    request;
  const { agentsMd, systemPrompt, appendSystemPrompt, skills, harnessFiles, sandboxCredentials } = request;
  const published = customTools.map(({ name, description, inputSchema, readOnly }) => ({
    name,
    description,
    inputSchema,
    readOnly,
  }));
  const settings = {
    published,
    mcpServers,
    model,
    reasoningEffort,
    modelConnection,
    permissions,
    harnessMode,
    sandboxCredentials,
  };
  const files = { agentsMd, systemPrompt, appendSystemPrompt, skills, harnessFiles };
  return createHash("sha256")
    .update(canonicalJson({ ...settings, ...files }))
    .digest("base64url");
}

const units = [
  ["memoryMb", "MiB of memory"],
  ["processes", "processes and threads"],
  ["cpus", "processors"],
  ["diskMb", "MiB of disk"],
] as const satisfies readonly (readonly [keyof ResourceLimits, string])[];

/**
 * The same failure of an agent to start, with the limits that the request set: an agent that they are too small for
 * says nothing of them. Any other error as it is. Pure.
 */
export function namingLimits(thrown: unknown, limits: ResourceLimits): unknown {
  if (!(thrown instanceof HarnessFailed)) return thrown;
  const hint = limitsHint(limits);
  return hint === "" ? thrown : new HarnessFailed(`${thrown.message}${hint}`, { cause: thrown });
}

/** What a request's limits add to a message about a start: a sentence after a space, or nothing. Pure. */
export function limitsHint(limits: ResourceLimits): string {
  const set = units.flatMap(([name, what]) => {
    const limit = limits[name];
    return limit === undefined ? [] : [`${limit} ${what} (resources.${name})`];
  });
  return set.length === 0
    ? ""
    : ` The request allows it ${set.join(", ")}: if the agent needs more, raise that.`;
}

/** A warning for a turn in which the system killed processes for the memory of all; undefined where it killed none. Pure. */
export function memoryWarning(
  before: LimitHits | undefined,
  after: LimitHits | undefined,
  { memoryMb }: ResourceLimits,
): Warning | undefined {
  const killed = (after?.memory ?? 0) - (before?.memory ?? 0);
  if (killed <= 0) return undefined;
  const limit =
    memoryMb === undefined ? "its sandbox's limit" : `the limit of ${memoryMb} MiB (resources.memoryMb)`;
  const subject = killed === 1 ? "A process was" : `${killed.toLocaleString("en")} processes were`;
  return {
    path: "sandboxPermission.resources.memoryMb",
    message: `${subject} killed in this turn, as the session's processes together reached ${limit}. A command that ended with exit code 137 or by SIGKILL may be one of them: raise the limit, or run less at once.`,
  };
}

/** Milliseconds between two looks at the limits, and from a thread that was refused to the end of the start. */
const times = { lookMs: 250, graceMs: 10_000 };

/**
 * A start that ends if it waits for a thread that its limit doesn't allow: Node.js then waits forever without a message.
 *
 * @throws HarnessFailed that names the limit
 */
export async function unlessStarved<Result>(
  sandbox: Sandbox,
  { processes }: ResourceLimits,
  start: () => Promise<Result>,
  { lookMs, graceMs } = times,
): Promise<Result> {
  const before = sandbox.limitHits?.().processes;
  if (processes === undefined || before === undefined) return await start();
  const ended = new AbortController();
  const { signal } = ended;
  const starved = async (): Promise<never> => {
    while (sandbox.limitHits?.().processes === before) await delay(lookMs, undefined, { signal });
    await delay(graceMs, undefined, { signal });
    throw new HarnessFailed(
      `The agent didn't start within ${graceMs / 1_000} s after it was refused a process or thread: the session's limit of ${processes} processes and threads (resources.processes) is reached, by all its processes together and three or four of each jail's own. Raise it.`,
    );
  };
  try {
    return await Promise.race([start(), starved()]);
  } finally {
    ended.abort();
  }
}
