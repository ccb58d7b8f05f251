import { randomUUID } from "node:crypto";
import { type AcceptedPlan, PluginBrokeContract } from "@ambit/core";
import type { AgentEvent, RunRequest, ToolSpec } from "@ambit/core/contract";
import type {
  PermissionAnswer,
  PermissionQuestion,
  Publication,
  PublishedCall,
  PublishedOutcome,
} from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { canonicalJson } from "../canonical-json.js";
import { RunEvents } from "../events/run-events.js";
import { Warnings } from "../events/warnings.js";
import { Deadlines } from "../lifetime/deadlines.js";
import { aborted, LinkedAbort } from "../lifetime/linked-abort.js";
import { asPluginError } from "../lifetime/plugin-error.js";
import type { OwnedScope } from "../lifetime/scope.js";
import type { RunLimits } from "../limits.js";
import { Gatekeeper, type WantedCall, wantedBy } from "../permission/gatekeeper.js";
import { Asking } from "../permission/interaction/asking.js";
import { CallEvents } from "../permission/interaction/call-events.js";
import type { CallOrigin } from "../permission/interaction/call-ids.js";
import { Questions } from "../permission/interaction/questions.js";
import { Pause } from "../permission/pause.js";
import type { PermissionCeiling } from "../permission/permission.js";
import type { CallRouter } from "../session/publish.js";
import { tokens } from "../tokens.js";
import { ArgumentsChecker } from "./arguments/checker.js";
import { ToolArguments, unusableArguments } from "./arguments/tool-arguments.js";
import type { HandledCall } from "./call-ledger.js";
import { ToolExecution, tooManyCalls } from "./execute.js";
import { RunTools } from "./run-tools.js";
import { unsettledTexts } from "./settling.js";

/** Every tool call of a run: permission, then the arguments' schema, then the executor, then the outcome. */
@injectable()
export class ToolCalls {
  readonly #arguments: ToolArguments;
  readonly #questions: Questions;
  readonly #gatekeeper: Gatekeeper;
  /** What is told of the calls. */
  readonly events: CallEvents;
  readonly #over = new AbortController();
  /** Calls and questions that have no answer yet. */
  #open = 0;
  /** Whether the agent has called or asked for anything. */
  acted = false;

  constructor(
    @inject(tokens.request) request: RunRequest,
    @inject(tokens.plan) plan: AcceptedPlan,
    @inject(tokens.permissionCeiling) ceiling: PermissionCeiling,
    @inject(tokens.limits) readonly limits: RunLimits,
    @inject(tokens.scope) readonly scope: OwnedScope,
    @inject(Deadlines) readonly deadlines: Deadlines,
    @inject(RunEvents) told: RunEvents,
    @inject(Warnings) readonly warnings: Warnings,
    @inject(Asking) asking: Asking,
    @inject(Pause) readonly pause: Pause,
    @inject(RunTools) readonly known: RunTools,
    @inject(ToolExecution) readonly execution: ToolExecution,
    @inject(ArgumentsChecker) checker: ArgumentsChecker,
  ) {
    this.#arguments = new ToolArguments(checker);
    const { tools } = known;
    const emit = (event: AgentEvent) => told.emit(event);
    const mayAsk = (name: string, input: unknown) => this.#mayAsk(name, input);
    const mostOpen = limits.reportedCalls;
    this.events = new CallEvents({ tools, mayAsk, pausing: pause.signal, emit, mostOpen });
    const { announcements } = this.events;
    const { ids, used, answers, interactions } = asking;
    this.#questions = new Questions({ ids, used, answers, interactions, announcements, emit });
    this.#gatekeeper = new Gatekeeper(request, ceiling, plan.harness.actor, this.#questions);
  }

  /** The run is over: calls that wait for the user get their end. */
  end(): void {
    this.#over.abort();
  }

  /** From now on the agent's calls are this run's. */
  serve(router: CallRouter, published: Iterable<string>): void {
    router.current = this;
    for (const warning of this.#gatekeeper.learn(published)) this.warnings.add(warning);
  }

  /** A call of one of the request's own tools. */
  own(call: PublishedCall): Promise<PublishedOutcome> {
    return this.#answered(`The executor of '${call.name}'`, call, async () => {
      const tool = this.known.tools.get(call.name);
      if (tool === undefined) return failed(`There is no tool '${call.name}'.`);
      const wanted = { ...this.#wanted(call, "request"), tool, byCaller: this.known.isByCaller(tool) };
      const problem = (signal: AbortSignal) => this.#arguments.problem(tool, call.arguments, signal);
      return this.#permitted(wanted, call.signal, problem, (handled) =>
        this.#execute(wanted, call, tool, handled),
      );
    });
  }

  /** A call of a user's MCP server: behind the same permissions, whatever the server says of its tools. */
  foreign(publication: Publication, call: PublishedCall): Promise<PublishedOutcome> {
    return this.#answered(`The tool source of '${publication.name}'`, call, () => {
      const { name } = publication;
      const wanted = { ...this.#wanted(call, { server: name }), server: this.known.servers.get(name) };
      return this.#permitted(wanted, call.signal, undefined, () =>
        this.execution.foreign(call.name, call.signal, (signal) => publication.call({ ...call, signal })),
      );
    });
  }

  /** The agent asks, before it calls one of our tools or one of its own. */
  async answer(question: PermissionQuestion): Promise<PermissionAnswer> {
    if (this.pause.isPaused) return "park";
    this.acted = true;
    const asked = wantedBy(question, this.known.tools, this.known.servers);
    const byCaller = this.known.isByCaller(asked.tool);
    const wanted = { ...asked, byCaller };
    const { toolCallId, name, input } = wanted;
    if (this.#open >= this.limits.openCalls || unusableArguments(name, input) !== undefined) return "deny";
    const release = this.deadlines.hold();
    using asking = this.#asking();
    this.#open += 1;
    try {
      const answer = await this.#gatekeeper.question(wanted, asking.signal);
      const { ledger, announcements } = this.events;
      if (answer === "deny") ledger.handle(toolCallId, name, input, "finished").denied = true;
      else ledger.handle(toolCallId, name, input, answer === "park" ? "parked" : "allowed");
      if (answer === "park") this.pause.begin();
      else if (!byCaller) announcements.proceed(toolCallId);
      return answer;
    } finally {
      this.#open -= 1;
      release();
    }
  }

  /** Denied first, so that a denied tool says nothing of its schema; asked last, so that nobody is asked in vain. */
  async #permitted(
    wanted: WantedCall,
    signal: AbortSignal,
    problem: ((signal: AbortSignal) => Promise<string | undefined>) | undefined,
    act: (handled: HandledCall) => Promise<PublishedOutcome>,
  ): Promise<PublishedOutcome> {
    const { toolCallId, name, input } = wanted;
    // The turn is over: what the agent still calls is neither executed nor put to the user.
    using asking = this.#asking(signal);
    if (asking.signal.aborted) return failed(unsettledTexts.deferred);
    const isDenied = this.#gatekeeper.effective(wanted) === "deny";
    const wrong = isDenied ? undefined : await problem?.(asking.signal);
    if (wrong !== undefined) return failed(wrong);
    const verdict = await this.#gatekeeper.execution(wanted, asking.signal);
    const { ledger, announcements } = this.events;
    if (verdict.verdict === "park") {
      return this.#wait(ledger.handle(toolCallId, name, input, "parked"), signal);
    }
    if (wanted.byCaller !== true) announcements.proceed(toolCallId);
    const handled = ledger.handle(toolCallId, name, input, "executing");
    handled.denied = verdict.verdict === "deny";
    const outcome = verdict.verdict === "deny" ? failed(verdict.why) : await act(handled);
    if (handled.state === "executing") ledger.finish(handled, outcome);
    return outcome;
  }

  /** A call never throws: what goes wrong on our side ends the run, and the agent learns that the call failed. */
  async #answered(
    who: string,
    call: PublishedCall,
    step: () => Promise<PublishedOutcome>,
  ): Promise<PublishedOutcome> {
    this.acted = true;
    const unusable = unusableArguments(call.name, call.arguments);
    if (unusable !== undefined) return failed(unusable);
    if (this.#open >= this.limits.openCalls) return failed(tooManyCalls(call.name));
    const release = this.deadlines.hold();
    this.#open += 1;
    try {
      return await step();
    } catch (error) {
      this.scope.abort(asPluginError(who, error));
      return failed(`Tool '${call.name}' failed on the runner's side, and the run with it.`);
    } finally {
      this.#open -= 1;
      release();
    }
  }

  async #execute(
    wanted: WantedCall,
    call: PublishedCall,
    tool: ToolSpec,
    handled: HandledCall,
  ): Promise<PublishedOutcome> {
    const executor = this.known.executors.get(tool.kind);
    if (executor === undefined)
      throw new PluginBrokeContract(`The plan has no executor for kind '${tool.kind}'.`);
    const toolCall = { id: wanted.toolCallId, tool, arguments: call.arguments };
    const outcome = await this.execution.execute(executor, toolCall, call.signal);
    if (outcome.status === "parked") return this.#park(wanted, outcome.interaction, handled, call.signal);
    if (outcome.status === "completed" && outcome.data !== undefined) handled.data = outcome.data;
    return { output: outcome.output, isError: outcome.status === "failed" };
  }

  async #park(
    wanted: WantedCall,
    kind: "client_tool" | "user_input",
    handled: HandledCall,
    signal: AbortSignal,
  ): Promise<PublishedOutcome> {
    using asking = this.#asking(signal);
    const answered = await this.#questions.put(kind, wanted, asking.signal);
    if (answered === undefined) return this.#wait(handled, signal);
    const { output, isError } = answered.answer;
    this.#questions.answered(answered, kind, wanted);
    return { output: typeof output === "string" ? output : canonicalJson(output), isError };
  }

  /** Resolves when the run is over: an answer before that would let the model go on without the user. */
  async #wait(handled: HandledCall, signal: AbortSignal): Promise<PublishedOutcome> {
    handled.state = "parked";
    this.pause.begin();
    using ended = new LinkedAbort(signal, this.#over.signal);
    await aborted(ended.signal);
    return failed("This call waits for the user. It was not executed.");
  }

  /** Aborts when there is no point in asking any more. */
  #asking(...call: readonly AbortSignal[]): LinkedAbort {
    return new LinkedAbort(this.scope.signal, this.pause.signal, ...call);
  }

  #wanted(call: PublishedCall, origin: CallOrigin): WantedCall {
    const { name, arguments: input, id = this.events.ledger.claimId(name, input) ?? randomUUID() } = call;
    return { toolCallId: id, name, origin, input };
  }

  #mayAsk(name: string, input: unknown): boolean {
    const tool = this.known.tools.get(name);
    return this.known.isByCaller(tool) || this.#gatekeeper.mayAsk(name, input, tool, this.known.servers);
  }
}

function failed(output: string): PublishedOutcome {
  return { output, isError: true };
}
