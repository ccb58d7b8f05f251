import { PluginBrokeContract, RunTimedOut } from "@ambit/core";
import type { PublishedOutcome, RunScope, ToolCall, ToolExecutor, ToolOutcome } from "@ambit/core/plugin";
import { answeredWithin, LinkedAbort } from "../lifetime/linked-abort.js";
import { asPluginError } from "../lifetime/plugin-error.js";
import type { RunContext } from "../run-context.js";
import { needsCheck } from "./arguments/tool-arguments.js";

/**
 * One call by its executor, within the tool's time limit. What an executor throws after it was told to stop is the
 * call's failure; before, it breaks its contract.
 * @throws PluginBrokeContract
 */
export async function execute(
  run: RunContext,
  executor: ToolExecutor,
  call: ToolCall,
  given: AbortSignal,
): Promise<ToolOutcome> {
  const { limits } = run;
  const timeoutMs = call.tool.timeoutMs ?? limits.toolMs;
  const outcome = await limited<ToolOutcome>(run, call.tool.name, timeoutMs, given, (signal) =>
    executor.execute(call, { ...scopeOf(run), signal, timeoutMs }),
  ).catch((error: unknown) => {
    throw asPluginError(`Executor '${executor.name}'`, error);
  });
  if (outcome?.status === "parked" || typeof outcome?.output === "string") return outcome;
  throw new PluginBrokeContract(
    `Executor '${executor.name}' gave no outcome: its status must be completed, failed or parked, with a text.`,
  );
}

/** Makes ready what the run's first calls would wait for. @throws PluginBrokeContract */
export function prepareExecutors(run: RunContext): void {
  if (run.request.customTools.some(needsCheck)) run.shared.argumentsChecker.prepare();
  for (const { probed, uses } of run.plan.executors) {
    const executor = probed.actor;
    try {
      executor.prepare?.(uses, scopeOf(run));
    } catch (error) {
      throw asPluginError(`Executor '${executor.name}'`, error);
    }
  }
}

function scopeOf(run: RunContext): RunScope {
  const { plan, request, runId, log, scope } = run;
  return {
    runId,
    request,
    boundary: plan.boundary,
    sandbox: run.sandbox(),
    defer: (close) => scope.defer(close),
    log,
  };
}

/** A call that a tool source makes, within a time limit. */
export async function withinLimit(
  run: RunContext,
  name: string,
  timeoutMs: number,
  given: AbortSignal,
  call: (signal: AbortSignal) => Promise<PublishedOutcome>,
): Promise<PublishedOutcome> {
  const outcome = await limited<PublishedOutcome | { readonly status: "failed"; readonly output: string }>(
    run,
    name,
    timeoutMs,
    given,
    call,
  );
  return "status" in outcome ? { output: outcome.output, isError: true } : outcome;
}

/** Waits for the run's turn first, which is no part of the call's time. */
async function limited<Outcome>(
  { scope, deadlines, limits, shared, log }: RunContext,
  name: string,
  timeoutMs: number,
  given: AbortSignal,
  step: (signal: AbortSignal) => Promise<Outcome>,
): Promise<Outcome | { readonly status: "failed"; readonly output: string }> {
  const release = deadlines.hold();
  using abort = new LinkedAbort(scope.signal, given);
  let leave: (() => void) | undefined;
  try {
    leave = await shared.callSlots.acquire(scope, abort.signal);
    if (leave === undefined) return { status: "failed", output: tooManyCalls(name) };
    abort.after(timeoutMs, () => new RunTimedOut(`Tool '${name}' took longer than ${timeoutMs} ms.`));
    return await answeredWithin(abort.signal, limits.closeMs, () => step(abort.signal));
  } catch (error) {
    if (!abort.signal.aborted) throw error;
    if (error === abort.signal.reason)
      log.warn({ tool: name }, "a tool call went on after it was told to stop");
    else log.debug({ tool: name, error }, "a tool call threw when it was told to stop");
    const { reason } = abort.signal;
    const output = reason instanceof RunTimedOut ? reason.message : `Tool '${name}' was cancelled.`;
    return { status: "failed", output };
  } finally {
    leave?.();
    release();
  }
}

/** What the model learns of a call beyond the run's limit. */
export function tooManyCalls(name: string): string {
  return `Tool '${name}' wasn't called: too many calls are open at once. Wait for their results, then call it again.`;
}
