import { createHash, randomUUID } from "node:crypto";
import {
  asPluginError,
  callPure,
  checkedReturn,
  inOffer,
  offerTitle,
  PluginBrokeContract,
  pluginReturns,
  RunTimedOut,
} from "@ambit/core";
import type { InteractionPayload, JsonObject, McpServer, RunRequest, ToolSpec } from "@ambit/core/contract";
import type {
  Log,
  Publication,
  PublishedCall,
  PublishedOutcome,
  PublishedTool,
  RunScope,
  Sandbox,
  ToolDecision,
  ToolExecutor,
  ToolOutcome,
  ToolScope,
} from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { Redactor, secretsOutside } from "../events/redaction.js";
import { RunEvents } from "../events/run-events.js";
import type { FairSlots } from "../lifetime/fair-shares.js";
import { Deadlines, LinkedAbort, type OwnedScope, RightToAct, settledWithin } from "../lifetime/scope.js";
import type { RunLimits } from "../limits.js";
import { type PlannedRun, tokens } from "../tokens.js";
import type { InteractionKind } from "./answer.js";
import { ArgumentsChecker, needsCheck, ToolArguments } from "./arguments/checker.js";
import type { CallSubject } from "./call.js";

/** `unsent`: the call wasn't made. `unknown`: it was made, and was stopped before its outcome was known. */
type CutOff = "unsent" | "unknown";

type Failed = { readonly status: "failed"; readonly output: string };

/** A call that was made, or that could not be. */
export interface MadeCall {
  /** What the agent gets. */
  readonly outcome: PublishedOutcome;
  /** Data for the user interface, not for the model. */
  readonly data?: unknown;
  readonly cut?: CutOff | undefined;
}

/** @param Outcome of the call, or the reason why it has none. */
interface Limited<Outcome> {
  readonly outcome: Outcome | Failed;
  readonly cut?: CutOff | undefined;
}

/**
 * The tools of one run: which there are, what is wrong with a call, what its user reads of it, and its execution, within a
 * time limit and once a slot is free.
 */
@injectable()
export class RunTools {
  readonly byName: ReadonlyMap<string, ToolSpec>;
  /** The user's MCP servers, by their names. */
  readonly servers: ReadonlyMap<string, McpServer>;
  readonly policies: ToolPolicies;
  /** Keeps credentials out of what tools and MCP servers say to the agent. */
  readonly secrets: ResultSecrets;
  readonly #arguments: ToolArguments;
  /** The executors of the plan, by the kind of their tools. */
  readonly #executors: ReadonlyMap<string, ToolExecutor>;
  /** What every executor gets. Undefined until the sandbox is open. */
  #runScope: RunScope | undefined;
  /** Distinguishes the run's calls from those of another run that had the same id before. */
  readonly #nonce = randomUUID();

  constructor(
    @inject(tokens.run) private readonly run: PlannedRun,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(tokens.limits) private readonly limits: RunLimits,
    @inject(tokens.log) private readonly log: Log,
    @inject(RunEvents) private readonly events: RunEvents,
    @inject(Deadlines) private readonly deadlines: Deadlines,
    @inject(RightToAct) private readonly right: RightToAct,
    @inject(tokens.callSlots) private readonly slots: FairSlots,
    @inject(ArgumentsChecker) private readonly checker: ArgumentsChecker,
  ) {
    const { request, plan } = run;
    this.byName = new Map(request.customTools.map((tool) => [tool.name, tool]));
    this.servers = new Map(request.mcpServers.map((server) => [server.name, server]));
    this.#executors = new Map(plan.executors.map(({ probed: { actor } }) => [actor.kind, actor]));
    this.policies = new ToolPolicies(run.toolPolicies);
    this.secrets = new ResultSecrets(request);
    this.#arguments = new ToolArguments(checker);
  }

  /** Whether the user fulfils the tool's calls. */
  isByCaller(tool: ToolSpec | undefined): boolean {
    return tool !== undefined && this.#executors.get(tool.kind)?.site === "caller";
  }

  /** Prepares what the run's first calls would wait for. @throws PluginBrokeContract */
  prepare(sandbox: Sandbox): void {
    const { scope, log, checker } = this;
    const { id: runId, request, plan } = this.run;
    const defer: RunScope["defer"] = (close) => scope.defer(close);
    const runScope = { runId, request, boundary: plan.boundary, sandbox, defer, log };
    this.#runScope = runScope;
    if (request.customTools.some(needsCheck)) checker.prepare();
    for (const { probed, uses } of plan.executors) {
      const executor = probed.actor;
      try {
        inOffer(executor, () => executor.prepare?.(uses, { ...runScope }));
      } catch (error) {
        throw asPluginError(offerTitle(executor), error);
      }
    }
  }

  /** Why a call of one of the request's own tools can't be made, for the model. */
  async problem(tool: ToolSpec, input: JsonObject, signal: AbortSignal): Promise<string | undefined> {
    const decision = this.policies.decide(tool, input);
    if (decision?.kind === "malformed") return `Tool '${tool.name}' can't be called: ${decision.problem}`;
    return await this.#arguments.problem(tool, input, signal);
  }

  /** What the user reads of a call besides its name and arguments. */
  details({ tool, input, files }: CallSubject): InteractionPayload {
    const decision = this.policies.decide(tool, input);
    const details = decision?.kind === "permitted" ? decision.details : {};
    return { ...details, ...files, ...(tool?.render && { render: tool.render }) };
  }

  /**
   * One call of the request's own tools, within the tool's time limit. What an executor throws after its signal aborted is
   * the call's failure; if it throws before, it breaks its contract. The output has no credential that stays outside, and
   * is cut to the limit of one result.
   * @throws PluginBrokeContract
   */
  async execute(
    id: string,
    tool: ToolSpec,
    { arguments: input, signal }: PublishedCall,
  ): Promise<MadeCall | { readonly parkedFor: InteractionKind }> {
    const executor = this.#executors.get(tool.kind);
    if (executor === undefined)
      throw new PluginBrokeContract(`The plan has no executor for kind '${tool.kind}'.`);
    if (this.#runScope === undefined)
      throw new Error("A call was to be executed before its run was prepared.");
    const decision = this.policies.decide(tool, input);
    const context = decision?.kind === "permitted" ? decision.context : undefined;
    const call = { id, tool, arguments: input, context };
    const timeoutMs = tool.timeoutMs ?? this.limits.toolMs;
    const trace = this.events.observation.trace({ id, name: tool.name });
    const scope = { ...this.#runScope, ...trace, ...this.#identity(id), timeoutMs };
    const returned = await this.#limited<ToolOutcome>(tool.name, timeoutMs, signal, (limited) =>
      inOffer(executor, () => executor.execute(call, { ...scope, signal: limited })),
    ).catch((error: unknown) => {
      throw asPluginError(offerTitle(executor), error);
    });
    const outcome = checkedReturn(executor, "execute", pluginReturns.outcome, returned.outcome);
    const result = this.policies.readable(
      tool,
      outcome.status === "parked"
        ? outcome
        : { ...outcome, output: shortened(this.secrets.hide(outcome.output)) },
    );
    if (result.status === "parked") return { parkedFor: result.interaction };
    const { status, output } = result;
    const data = status === "completed" ? result.data : undefined;
    return { outcome: { output, isError: status === "failed" }, data, cut: returned.cut };
  }

  #identity(callId: string): Pick<ToolScope, "idempotencyKey" | "fence" | "mayAct"> {
    const { right } = this;
    const { hold } = right;
    return {
      idempotencyKey: createHash("sha256").update(`${this.#nonce} ${callId}`).digest("base64url"),
      fence: hold?.fence,
      mayAct: () => right.isCurrent,
    };
  }

  /** A call of a user's MCP server, by its tool source. */
  async callMcpTool(id: string, publication: Publication, made: PublishedCall): Promise<MadeCall> {
    const { outcome, cut } = await this.#limited<PublishedOutcome>(
      made.name,
      this.limits.toolMs,
      made.signal,
      (signal) =>
        publication.call({ ...made, ...this.events.observation.trace({ id, name: made.name }), signal }),
    );
    const output = shortened(this.secrets.hide(outcome.output));
    return { outcome: { output, isError: "status" in outcome || outcome.isError }, cut };
  }

  /** Waits for a slot first, which doesn't count towards the call's time. */
  async #limited<Outcome>(
    name: string,
    timeoutMs: number,
    callSignal: AbortSignal,
    step: (signal: AbortSignal) => Promise<Outcome>,
  ): Promise<Limited<Outcome>> {
    const { scope, limits, slots, log } = this;
    const release = this.deadlines.hold();
    using abort = new LinkedAbort(scope.signal, callSignal);
    let leave: (() => void) | undefined;
    let isSent = false;
    try {
      leave = await slots.acquire(scope, abort.signal);
      if (leave === undefined)
        return { outcome: { status: "failed", output: tooManyCalls(name) }, cut: "unsent" };
      abort.after(timeoutMs, () => new RunTimedOut(`Tool '${name}' took longer than ${timeoutMs} ms.`));
      await this.right.confirmed(abort.signal);
      abort.signal.throwIfAborted();
      isSent = true;
      const outcome = await settledWithin(abort.signal, limits.closeMs, () => step(abort.signal));
      return isStopped(outcome, abort.signal) ? { outcome, cut: "unknown" } : { outcome };
    } catch (error) {
      if (!abort.signal.aborted) throw error;
      if (error === abort.signal.reason)
        log.warn({ tool: name }, "a tool call went on after its signal had aborted");
      else log.debug({ tool: name, error }, "a tool call threw when its signal aborted");
      const { reason } = abort.signal;
      const output = reason instanceof RunTimedOut ? reason.message : `Tool '${name}' was cancelled.`;
      const cut = !isSent ? "unsent" : reason instanceof RunTimedOut ? undefined : "unknown";
      return { outcome: { status: "failed", output }, cut };
    } finally {
      leave?.();
      release();
    }
  }
}

/** Whether a call failed because it was stopped from outside: it may have had its effect. A time limit is an outcome. */
function isStopped(outcome: unknown, { aborted, reason }: AbortSignal): boolean {
  if (!aborted || reason instanceof RunTimedOut || typeof outcome !== "object" || outcome === null)
    return false;
  return (
    ("status" in outcome && outcome.status === "failed") || ("isError" in outcome && outcome.isError === true)
  );
}

/** The result that the model gets for a call beyond the run's limit. */
export function tooManyCalls(name: string): string {
  return `Tool '${name}' wasn't called: too many calls are open at once. Wait for their results, then call it again.`;
}

/** Bytes of one result that the model gets at most. */
export const maxOutputBytes = 100_000;

const steering =
  "This result was too large to return in full. Narrow your query (add filters, a smaller date range, or specific fields), request a summary, or paginate and fetch fewer items per call, then try again.";

/**
 * `text` unchanged, or truncated at a character with a notice of how much was omitted; never longer than `limit` bytes.
 */
export function shortened(text: string, limit: number = maxOutputBytes): string {
  // A UTF-16 code unit takes three bytes at most, so most results need no counting.
  if (text.length * 3 <= limit) return text;
  const length = Buffer.byteLength(text);
  if (length <= limit) return text;
  // Only the part that may be kept is copied: a result may have megabytes.
  const bytes = Buffer.from(text.slice(0, limit), "utf8");
  const notice = (omitted: number) => `\n\n[… ${omitted} bytes omitted]\n${steering}`;
  let end = Math.max(0, limit - Buffer.byteLength(notice(length)));
  // 10xxxxxx is a continuation byte: cut before the character's first byte.
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return bytes.toString("utf8", 0, end) + notice(length - end);
}

/**
 * What a platform or an MCP server answers reaches the agent, and may repeat the credential that it was called with, as in
 * "invalid token: …", or in the description of a tool that is made for its user.
 */
export class ResultSecrets {
  #redactor: Redactor | undefined;

  constructor(private readonly request: RunRequest) {}

  /** A tool's result without the credentials that stay outside the sandbox. */
  hide(output: string): string {
    return this.#loaded().text(output);
  }

  /** The tools that an MCP server lists, in the same way. Those with a credential in their name can't be called under another: undefined. */
  hideInTools(tools: readonly PublishedTool[]): readonly (PublishedTool | undefined)[] {
    const redactor = this.#loaded();
    if (!redactor.hides) return tools;
    const hidden = redactor.value(tools);
    return hidden.map((tool, index) => (tool.name === tools[index]?.name ? tool : undefined));
  }

  #loaded(): Redactor {
    this.#redactor ??= new Redactor(secretsOutside(this.request));
    return this.#redactor;
  }
}

/**
 * What the tool policies of a run decide about calls of its request's own tools. The first one that governs a tool decides on
 * it. Every method throws PluginBrokeContract for a policy that breaks its contract.
 */
class ToolPolicies {
  constructor(private readonly policies: PlannedRun["toolPolicies"]) {}

  /** What is decided about a call with these arguments; undefined for a tool that no policy governs. */
  decide(tool: ToolSpec | undefined, input: unknown): ToolDecision | undefined {
    if (tool === undefined) return undefined;
    for (const { offer, policy } of this.policies) {
      const decision = callPure(offer, "decide", pluginReturns.toolDecision, () =>
        policy.decide(tool, input),
      );
      if (decision !== undefined) return decision;
    }
    return undefined;
  }

  /** What the model may read of an outcome. */
  readable(tool: ToolSpec, outcome: ToolOutcome): ToolOutcome {
    return this.policies.reduce(
      (readable, { offer, policy }) =>
        callPure(offer, "readable", pluginReturns.outcome, () => policy.readable(tool, readable)),
      outcome,
    );
  }
}
