import { randomUUID } from "node:crypto";
import type { AgentEvent, McpServer, ToolSpec } from "../contract/index.js";
import { PluginBrokeContract, RunTimedOut } from "../errors.js";
import type {
  PermissionAnswer,
  PermissionQuestion,
  Publication,
  PublishedCall,
  PublishedOutcome,
  ToolCall,
  ToolExecutor,
  ToolOutcome,
} from "../plugin/index.js";
import { canonicalJson } from "./canonical-json.js";
import type { Gatekeeper, WantedCall } from "./gatekeeper.js";
import { aborted, LinkedAbort } from "./linked-abort.js";
import type { RunContext } from "./run-context.js";
import { ToolArguments } from "./tool-arguments.js";

/** The name under which the request's own tools are published; the contract keeps it from MCP servers. */
export const ownPublication = "ambit";

/** What became of a call, until the agent reports it and its event is completed with it. */
interface Settled {
  readonly key: string;
  readonly denied: boolean;
  readonly data?: unknown;
}

/** Every tool call of a run: permission, then the arguments' schema, then the executor, then the outcome. */
export class ToolCalls {
  readonly #arguments = new ToolArguments();
  readonly #tools: ReadonlyMap<string, ToolSpec>;
  readonly #executors: ReadonlyMap<string, ToolExecutor>;
  readonly #servers: ReadonlyMap<string, McpServer>;
  readonly #settled: Settled[] = [];
  readonly #reported = new Map<string, { readonly name: string; input: unknown }>();

  constructor(
    readonly run: RunContext,
    readonly gatekeeper: Gatekeeper,
    /** Ends the turn without an answer to the agent: the call waits for somebody. */
    readonly pause: () => void,
  ) {
    const { request, plan } = run;
    this.#tools = new Map(request.customTools.map((tool) => [tool.name, tool]));
    this.#executors = new Map(plan.executors.map(({ probed: { actor } }) => [actor.kind, actor]));
    this.#servers = new Map(request.mcpServers.map((server) => [server.name, server]));
  }

  /** The request's own tools, as the agent gets to see them. */
  publication(): Publication {
    return {
      name: ownPublication,
      tools: [...this.#tools.values()],
      call: (call) => this.#call(call),
    };
  }

  /** A user's MCP server, behind the same permissions. */
  guarded(publication: Publication): Publication {
    const server = this.#servers.get(publication.name);
    return {
      ...publication,
      call: async (call) => {
        const listed = publication.tools.find(({ name }) => name === call.name);
        const wanted = { ...wantedCall(call), server, readOnly: listed?.readOnly };
        return (await this.#refusal(wanted, call.signal)) ?? publication.call(call);
      },
    };
  }

  /** The agent asks, before it calls one of our tools or one of its own. */
  async answer(question: PermissionQuestion): Promise<PermissionAnswer> {
    const server = question.server === undefined ? undefined : this.#servers.get(question.server);
    const tool = server === undefined ? this.#tools.get(question.toolName) : undefined;
    const { toolCallId, toolName: name, input, readOnly } = question;
    const wanted = { toolCallId, name, input, tool, server, readOnly, byCaller: this.#byCaller(tool) };
    const answer = this.gatekeeper.question(question, wanted);
    if (answer === "deny") this.#settled.push({ key: keyOf(name, input), denied: true });
    if (answer === "park") this.pause();
    return answer;
  }

  /** Completes what the agent reports of a call with what only we know: how it is shown, whether it was denied. */
  complete(event: AgentEvent): AgentEvent {
    if (event.type === "tool_call" && event.name !== undefined) {
      this.#reported.set(event.id, { name: event.name, input: event.input });
      const render = this.#tools.get(event.name)?.render;
      return render === undefined ? event : { ...event, render };
    }
    if (event.type !== "tool_result") return event;
    const reported = this.#reported.get(event.id);
    if (reported === undefined) return event;
    this.#reported.delete(event.id);
    const settled = this.#takeSettled(reported.name, reported.input);
    const render = this.#tools.get(reported.name)?.render;
    return {
      ...event,
      ...(settled?.denied === true ? { denied: true, isError: true } : {}),
      ...(settled?.data === undefined ? {} : { data: settled.data }),
      ...(render === undefined ? {} : { render }),
    };
  }

  async #call(call: PublishedCall): Promise<PublishedOutcome> {
    const tool = this.#tools.get(call.name);
    if (tool === undefined) return failed(`There is no tool '${call.name}'.`);
    const wanted = { ...wantedCall(call), tool, byCaller: this.#byCaller(tool) };
    const problem = this.#arguments.problem(tool, call.arguments);
    if (problem !== undefined) return failed(problem);
    const refusal = await this.#refusal(wanted, call.signal);
    if (refusal !== undefined) return refusal;
    const executor = this.#executors.get(tool.kind);
    if (executor === undefined)
      throw new PluginBrokeContract(`The plan has no executor for kind '${tool.kind}'.`);
    const outcome = await this.#execute(
      executor,
      { id: wanted.toolCallId, tool, arguments: call.arguments },
      call.signal,
    );
    if (outcome.status === "parked") return this.#park(wanted, outcome.interaction, call.signal);
    if (outcome.status === "completed" && outcome.data !== undefined) {
      this.#settled.push({ key: keyOf(tool.name, call.arguments), denied: false, data: outcome.data });
    }
    return { output: outcome.output, isError: outcome.status === "failed" };
  }

  /** Undefined when the call may go on. */
  async #refusal(wanted: WantedCall, signal: AbortSignal): Promise<PublishedOutcome | undefined> {
    const verdict = this.gatekeeper.execution(wanted);
    if (verdict.verdict === "allow") return undefined;
    if (verdict.verdict === "park") return this.#wait(signal);
    this.#settled.push({ key: keyOf(wanted.name, wanted.input), denied: true });
    return failed(verdict.why);
  }

  async #execute(executor: ToolExecutor, call: ToolCall, callSignal: AbortSignal): Promise<ToolOutcome> {
    const { scope, limits, deadlines, plan, request, runId, log } = this.run;
    const timeoutMs = call.tool.timeoutMs ?? limits.toolMs;
    const release = deadlines.hold();
    using abort = new LinkedAbort(scope.signal, callSignal);
    abort.after(
      timeoutMs,
      () => new RunTimedOut(`Tool '${call.tool.name}' took longer than ${timeoutMs} ms.`),
    );
    try {
      return await executor.execute(call, {
        runId,
        request,
        boundary: plan.boundary,
        sandbox: this.run.sandbox(),
        signal: abort.signal,
        timeoutMs,
        log,
      });
    } catch (error) {
      const broken = new PluginBrokeContract(`Executor '${executor.name}' threw instead of answering.`, {
        cause: error,
      });
      scope.abort(broken);
      throw broken;
    } finally {
      release();
    }
  }

  async #park(
    wanted: WantedCall,
    kind: "client_tool" | "user_input",
    signal: AbortSignal,
  ): Promise<PublishedOutcome> {
    const { name: toolName, input, toolCallId, tool } = wanted;
    const answer = this.gatekeeper.answers.take("output", toolName, input);
    if (answer !== undefined) {
      this.run.emit({ type: "interaction_response", id: toolCallId, kind, payload: { toolName } });
      const output = typeof answer.output === "string" ? answer.output : canonicalJson(answer.output);
      return { output, isError: answer.isError };
    }
    const payload = {
      toolCallId,
      toolName,
      input,
      ...(tool?.render === undefined ? {} : { render: tool.render }),
    };
    this.run.emit({ type: "interaction_request", id: randomUUID(), kind, payload });
    return this.#wait(signal);
  }

  /** The turn ends before this resolves: an answer now would let the model go on without the user. */
  async #wait(signal: AbortSignal): Promise<PublishedOutcome> {
    this.pause();
    using ended = new LinkedAbort(signal, this.run.scope.signal);
    await aborted(ended.signal);
    return failed("This call waits for the user. It was not executed.");
  }

  #byCaller(tool: ToolSpec | undefined): boolean {
    return tool !== undefined && this.#executors.get(tool.kind)?.site === "caller";
  }

  #takeSettled(name: string, input: unknown): Settled | undefined {
    const key = keyOf(name, input);
    const index = this.#settled.findIndex((settled) =>
      input === undefined ? settled.key.startsWith(`${name} `) : settled.key === key,
    );
    return index < 0 ? undefined : this.#settled.splice(index, 1)[0];
  }
}

function wantedCall(call: PublishedCall): WantedCall {
  return { toolCallId: call.id ?? randomUUID(), name: call.name, input: call.arguments };
}

function keyOf(name: string, input: unknown): string {
  return `${name} ${canonicalJson(input)}`;
}

function failed(output: string): PublishedOutcome {
  return { output, isError: true };
}
