import { createHash, randomUUID } from "node:crypto";
import {
  type AcceptedPlan,
  checkedReturn,
  inOffer,
  offerTitle,
  pluginReturns,
  RunTimedOut,
} from "@ambit/core";
import type { RunRequest } from "@ambit/core/contract";
import type {
  Log,
  Publication,
  PublishedCall,
  PublishedOutcome,
  RunScope,
  Sandbox,
  ToolCall,
  ToolExecutor,
  ToolOutcome,
  ToolScope,
} from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { Observation } from "../../events/observation.js";
import { Deadlines } from "../../lifetime/deadlines.js";
import type { FairSlots } from "../../lifetime/fair-slots.js";
import { LinkedAbort, settledWithin } from "../../lifetime/linked-abort.js";
import { asPluginError } from "../../lifetime/plugin-error.js";
import { RightToAct } from "../../lifetime/right-to-act.js";
import type { OwnedScope } from "../../lifetime/scope.js";
import type { RunLimits } from "../../limits.js";
import { tokens } from "../../tokens.js";
import { ArgumentsChecker } from "./arguments/checker.js";
import { needsCheck } from "./arguments/tool-arguments.js";
import { ResultSecrets } from "./result-secrets.js";
import { shortened } from "./shortened.js";

/** `unsent`: the call wasn't made. `unknown`: it was made, and was stopped before its outcome was known. */
export type CutOff = "unsent" | "unknown";

type Failed = { readonly status: "failed"; readonly output: string };

/** @param Outcome of the call, or the reason why it has none. */
interface Limited<Outcome> {
  readonly outcome: Outcome | Failed;
  readonly cut?: CutOff | undefined;
}

/** Executes the calls of one run, each within a time limit and once a slot is free. */
@injectable()
export class ToolExecution {
  /** The context of executors, once the sandbox is open. */
  #given: RunScope | undefined;
  /** Distinguishes its calls from those of another run that had the same id before. */
  readonly #nonce = randomUUID();

  constructor(
    @inject(tokens.runId) private readonly runId: string,
    @inject(tokens.request) private readonly request: RunRequest,
    @inject(tokens.plan) private readonly plan: AcceptedPlan,
    @inject(tokens.scope) private readonly scope: OwnedScope,
    @inject(tokens.limits) private readonly limits: RunLimits,
    @inject(tokens.log) private readonly log: Log,
    @inject(Observation) private readonly observation: Observation,
    @inject(Deadlines) private readonly deadlines: Deadlines,
    @inject(RightToAct) private readonly right: RightToAct,
    @inject(tokens.callSlots) private readonly slots: FairSlots,
    @inject(ArgumentsChecker) private readonly checker: ArgumentsChecker,
    @inject(ResultSecrets) private readonly secrets: ResultSecrets,
  ) {}

  /** Prepares what the run's first calls would wait for. @throws PluginBrokeContract */
  prepare(sandbox: Sandbox): void {
    const { runId, request, plan, scope, log } = this;
    const defer: RunScope["defer"] = (close) => scope.defer(close);
    this.#given = { runId, request, boundary: plan.boundary, sandbox, defer, log };
    if (request.customTools.some(needsCheck)) this.checker.prepare();
    for (const { probed, uses } of plan.executors) {
      const executor = probed.actor;
      try {
        const given = { ...this.#given };
        inOffer(executor, () => executor.prepare?.(uses, given));
      } catch (error) {
        throw asPluginError(offerTitle(executor), error);
      }
    }
  }

  /**
   * One call by its executor, within the tool's time limit. What an executor throws after its signal aborted is the
   * call's failure; if it throws before, it breaks its contract. The output has no credential that stays outside, and is
   * cut to the limit of one result.
   * @throws PluginBrokeContract
   */
  async execute(
    executor: ToolExecutor,
    call: ToolCall,
    signal: AbortSignal,
  ): Promise<{ readonly result: ToolOutcome; readonly cut?: CutOff | undefined }> {
    const given = this.#given;
    if (given === undefined) throw new Error("A call was to be executed before its run was prepared.");
    const timeoutMs = call.tool.timeoutMs ?? this.limits.toolMs;
    const trace = this.observation.trace({ id: call.id, name: call.tool.name });
    const context = { ...given, ...trace, ...this.#identity(call.id), timeoutMs };
    const returned = await this.#limited<ToolOutcome>(call.tool.name, timeoutMs, signal, (limited) =>
      inOffer(executor, () => executor.execute(call, { ...context, signal: limited })),
    ).catch((error: unknown) => {
      throw asPluginError(offerTitle(executor), error);
    });
    const outcome = checkedReturn(executor, "execute", pluginReturns.outcome, returned.outcome);
    if (outcome.status === "parked") return { result: outcome };
    const output = shortened(await this.secrets.hide(outcome.output));
    return { result: { ...outcome, output }, cut: returned.cut };
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
  async callMcpTool(
    id: string,
    publication: Publication,
    made: PublishedCall,
  ): Promise<{ readonly outcome: PublishedOutcome; readonly cut?: CutOff | undefined }> {
    const { outcome, cut } = await this.#limited<PublishedOutcome>(
      made.name,
      this.limits.toolMs,
      made.signal,
      (signal) => publication.call({ ...made, ...this.observation.trace({ id, name: made.name }), signal }),
    );
    const output = shortened(await this.secrets.hide(outcome.output));
    return { outcome: { output, isError: "status" in outcome || outcome.isError }, cut };
  }

  /** Waits for a slot first, which doesn't count towards the call's time. */
  async #limited<Outcome>(
    name: string,
    timeoutMs: number,
    given: AbortSignal,
    step: (signal: AbortSignal) => Promise<Outcome>,
  ): Promise<Limited<Outcome>> {
    const { scope, limits, slots, log } = this;
    const release = this.deadlines.hold();
    using abort = new LinkedAbort(scope.signal, given);
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
