import { PluginBrokeContract } from "@ambit/core";
import type { ToolSpec } from "@ambit/core/contract";
import type {
  PermissionDecision,
  PermissionQuestion,
  Publication,
  PublishedCall,
  PublishedOutcome,
} from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { canonicalJson } from "../canonical-json.js";
import { Warnings } from "../events/warnings.js";
import { Deadlines } from "../lifetime/deadlines.js";
import { aborted, LinkedAbort } from "../lifetime/linked-abort.js";
import { asPluginError } from "../lifetime/plugin-error.js";
import type { OwnedScope } from "../lifetime/scope.js";
import type { RunLimits } from "../limits.js";
import { tokens } from "../tokens.js";
import { AgentCalls } from "./agent-calls.js";
import { Questions } from "./ask/questions.js";
import { CallEvents } from "./call-events.js";
import type { CallRouter } from "./call-router.js";
import { type CallOrigin, type CallSubject, subjectOf } from "./call-subject.js";
import { Gatekeeper } from "./gatekeeper.js";
import { Pause } from "./pause.js";
import { Permissions } from "./permission/permissions.js";
import { ToolArguments, unusableArguments } from "./tools/arguments/tool-arguments.js";
import { ToolExecution, tooManyCalls } from "./tools/execute.js";
import { GatewayTools } from "./tools/gateway/gateway-tools.js";
import { RunTools } from "./tools/run-tools.js";
import { unsettledTexts } from "./unsettled.js";

/** Further questions that may follow the one that a turn pauses for. */
const maxLateQuestions = 32;

/** The outcome of a call. Undefined: it waits for the user. */
type Acted = { readonly outcome: PublishedOutcome; readonly data?: unknown } | undefined;

/** Created once: `abort()` without a reason creates an error with its stack each time. */
const over = new Error("The run is over.");

/** Every tool call of a run: permission, then the arguments' schema, then the executor, then the outcome. */
@injectable()
export class ToolCalls {
  readonly #over = new AbortController();
  /** Calls and questions without an answer yet. */
  #open = 0;
  #askedLate = 0;
  /** Whether the agent has called or asked for anything. */
  acted = false;

  constructor(
    @inject(tokens.limits) readonly limits: RunLimits,
    @inject(tokens.scope) readonly scope: OwnedScope,
    @inject(Deadlines) readonly deadlines: Deadlines,
    @inject(Warnings) readonly warnings: Warnings,
    @inject(AgentCalls) readonly calls: AgentCalls,
    @inject(CallEvents) readonly events: CallEvents,
    @inject(Permissions) readonly permissions: Permissions,
    @inject(Gatekeeper) readonly gatekeeper: Gatekeeper,
    @inject(Questions) readonly questions: Questions,
    @inject(Pause) readonly pause: Pause,
    @inject(RunTools) readonly known: RunTools,
    @inject(ToolArguments) readonly toolArguments: ToolArguments,
    @inject(ToolExecution) readonly execution: ToolExecution,
    @inject(GatewayTools) readonly gateway: GatewayTools,
  ) {}

  /** The run is over: ends the calls that wait for the user. */
  end(): void {
    this.#over.abort(over);
  }

  /** From now on the agent's calls are this run's. */
  serve(router: CallRouter, published: Iterable<string>): void {
    router.current = this;
    for (const warning of this.permissions.learn(published)) this.warnings.add(warning);
  }

  /** A call of one of the request's own tools. */
  own(made: PublishedCall): Promise<PublishedOutcome> {
    return this.#guarded(`The executor of '${made.name}'`, made, async () => {
      const tool = this.known.tools.get(made.name);
      if (tool === undefined) return failed(`There is no tool '${made.name}'.`);
      const call = this.#withPolicy({ ...this.#taken(made, "request"), tool });
      const problem = async (signal: AbortSignal) =>
        this.gateway.problem(tool, made.arguments) ??
        (await this.toolArguments.problem(tool, made.arguments, signal));
      return this.#permitted(call, made.signal, problem, () => this.#execute(call, made, tool));
    });
  }

  /**
   * A call of a user's MCP server: subject to the same permissions, regardless of what the server says about its tools.
   */
  foreign(publication: Publication, made: PublishedCall): Promise<PublishedOutcome> {
    return this.#guarded(`The tool source of '${publication.name}'`, made, () => {
      const { name } = publication;
      const call = { ...this.#taken(made, { server: name }), server: this.known.servers.get(name) };
      return this.#permitted(call, made.signal, undefined, async () => ({
        outcome: await this.execution.foreign(made.name, made.signal, (signal) =>
          publication.call({ ...made, ...this.execution.observation.trace(call.id), signal }),
        ),
      }));
    });
  }

  /** The agent asks before it calls one of the run's tools or its own. */
  async decide(question: PermissionQuestion): Promise<PermissionDecision> {
    this.acted = true;
    const { toolName: name, input } = question;
    if (this.#open >= this.limits.openCalls || unusableArguments(name, input) !== undefined)
      return this.pause.isPaused ? "park" : "deny";
    const release = this.deadlines.hold();
    using asking = this.#asking();
    this.#open += 1;
    const { id } = this.calls.take(question.toolCallId, name, input);
    const asked = subjectOf(question, this.known.tools, this.known.servers);
    const call = this.#withPolicy({ ...asked, id });
    try {
      if (this.pause.isPaused) {
        if (!(await this.#alsoAsk(call))) this.calls.step(id, { step: "release" });
        return "park";
      }
      const decision = await this.gatekeeper.question(call, asking.signal);
      if (decision === "park") this.pause.begin();
      else {
        this.calls.step(id, { step: decision });
        if (!call.byCaller) this.events.proceed(id);
      }
      return decision;
    } finally {
      this.#open -= 1;
      release();
    }
  }

  /** Denies first, so that a denied tool doesn't reveal its schema; asks last, so that the user isn't asked in vain. */
  async #permitted(
    call: CallSubject,
    signal: AbortSignal,
    problem: ((signal: AbortSignal) => Promise<string | undefined>) | undefined,
    act: () => Promise<Acted>,
  ): Promise<PublishedOutcome> {
    const { id } = call;
    // The turn is over: what the agent still calls is neither executed nor put to the user.
    using asking = this.#asking(signal);
    if (asking.signal.aborted) {
      const isAsked = !signal.aborted && (await this.#alsoAsk(call, () => problem?.(signal)));
      return isAsked ? this.#wait(signal) : this.#undecided(id, unsettledTexts.deferred);
    }
    const isDenied = this.permissions.effective(call) === "deny";
    const wrong = isDenied ? undefined : await problem?.(asking.signal);
    if (wrong !== undefined) return this.#undecided(id, wrong);
    const decision = await this.gatekeeper.execution(call, asking.signal);
    if (decision.verdict === "park") return this.#wait(signal);
    if (call.byCaller !== true) this.events.proceed(id);
    if (decision.verdict === "deny") {
      const outcome = failed(decision.why);
      this.calls.step(id, { step: "deny", outcome });
      return outcome;
    }
    this.calls.step(id, { step: "execute" });
    const acted = await act();
    if (acted === undefined) return this.#wait(signal);
    this.calls.step(id, { step: "finish", ...acted });
    return acted.outcome;
  }

  /** A call never throws: a failure on our side ends the run, and the agent gets the call's failure. */
  async #guarded(
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

  async #execute(call: CallSubject, made: PublishedCall, tool: ToolSpec): Promise<Acted> {
    const executor = this.known.executors.get(tool.kind);
    if (executor === undefined)
      throw new PluginBrokeContract(`The plan has no executor for kind '${tool.kind}'.`);
    const context = this.gateway.context(tool, made.arguments);
    const toolCall = {
      ...{ id: call.id, tool, arguments: made.arguments },
      ...(context === undefined ? {} : { context }),
    };
    const result = this.gateway.permitted(
      tool,
      await this.execution.execute(executor, toolCall, made.signal),
    );
    if (result.status === "parked") return this.#put(call, result.interaction, made.signal);
    const outcome = { output: result.output, isError: result.status === "failed" };
    return result.status === "completed" && result.data !== undefined
      ? { outcome, data: result.data }
      : { outcome };
  }

  #withPolicy(call: CallSubject): CallSubject {
    const { tool, input } = call;
    const byCaller = this.known.isByCaller(tool);
    const denial = this.gateway.denial(tool, input);
    return { ...call, byCaller, details: this.gateway.details(tool, input), denial };
  }

  /** The user fulfils the call. */
  async #put(call: CallSubject, kind: "client_tool" | "user_input", signal: AbortSignal): Promise<Acted> {
    using asking = this.#asking(signal);
    const answered = await this.questions.put(kind, call, asking.signal);
    if (answered === undefined) return undefined;
    const { output, isError } = answered.answer;
    this.questions.answered(answered, kind, call);
    return { outcome: { output: typeof output === "string" ? output : canonicalJson(output), isError } };
  }

  /** Resolves when the run is over, since an earlier response would let the model continue without the user. */
  async #wait(signal: AbortSignal): Promise<PublishedOutcome> {
    this.pause.begin();
    using ended = new LinkedAbort(signal, this.#over.signal);
    await aborted(ended.signal);
    return { ...failed("This call waits for the user. It was not executed."), isLate: true };
  }

  /** Agents that call several tools in parallel ask about the next one when the turn has begun to pause for the first. */
  async #alsoAsk(
    call: CallSubject,
    problem?: () => Promise<string | undefined> | undefined,
  ): Promise<boolean> {
    const { pause, scope, permissions } = this;
    if (!pause.isPaused || scope.signal.aborted || this.#askedLate >= maxLateQuestions) return false;
    if (permissions.effective(call) !== "ask" || (await problem?.()) !== undefined) return false;
    this.#askedLate += 1;
    return this.questions.ask("user_approval", call, pause.signal);
  }

  #undecided(id: string, why: string): PublishedOutcome {
    this.calls.step(id, { step: "release" });
    return failed(why);
  }

  /** Aborts when asking has become pointless. */
  #asking(...call: readonly AbortSignal[]): LinkedAbort {
    return new LinkedAbort(this.scope.signal, this.pause.signal, ...call);
  }

  #taken({ id, name, arguments: input }: PublishedCall, origin: CallOrigin): CallSubject {
    return { id: this.calls.take(id, name, input).id, name, origin, input };
  }
}

function failed(output: string): PublishedOutcome {
  return { output, isError: true };
}
