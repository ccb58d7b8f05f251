import {
  type AgentEvent,
  type McpServer,
  ownServerName,
  type Permission,
  type RunRequest,
  type ToolSpec,
  type Warning,
} from "../contract/index.js";
import type { Harness, PermissionAnswer, PermissionQuestion, ToolClass } from "../plugin/index.js";
import { Answers, approvalIn } from "./answers.js";
import type { Interactions } from "./interactions.js";
import { classNamesOf, idleRules, type KnownTools, toolsNamed } from "./permission/known-tools.js";
import { type PermissionCeiling, permissionOf } from "./permission/permission.js";

/** A call that somebody wants to make. */
export interface WantedCall {
  readonly toolCallId: string;
  readonly name: string;
  readonly input: unknown;
  /** The tool of the request, if it is one; else the agent's own, or its server's. */
  readonly tool?: ToolSpec | undefined;
  readonly server?: McpServer | undefined;
  /** What the agent says of its own tool. Of any other, only the request's word counts. */
  readonly saysReadOnly?: boolean | undefined;
  /** What a tool of the agent's own does. */
  readonly toolClass?: ToolClass | undefined;
  /** Fulfilled by the user: answering it *is* the user's consent. */
  readonly byCaller?: boolean | undefined;
}

/** The call that an agent asks leave for. */
export function wantedBy(
  { toolCallId, toolName: name, input, readOnly, server: serverName, toolClass }: PermissionQuestion,
  tools: ReadonlyMap<string, ToolSpec>,
  servers: ReadonlyMap<string, McpServer>,
): WantedCall {
  const server = serverName === undefined ? undefined : servers.get(serverName);
  // A tool of the agent's own may have the name of one of the request's: it isn't that one.
  const tool = serverName === ownServerName ? tools.get(name) : undefined;
  return { toolCallId, name, input, tool, server, saysReadOnly: readOnly, toolClass };
}

export type Verdict =
  | { readonly verdict: "allow" }
  | { readonly verdict: "deny"; readonly why: string }
  | { readonly verdict: "park" };

/**
 * Decides, for the whole run, whether a call may be made: when the agent asks, and again where it is executed,
 * since what a sandbox says isn't trusted. A consent is for one call with the same arguments, and is used up.
 */
export class Gatekeeper {
  /** Consents that the agent's question already took; the execution that follows uses them. */
  readonly #granted = new Answers();
  #tools: KnownTools;

  constructor(
    readonly request: RunRequest,
    readonly ceiling: PermissionCeiling,
    readonly answers: Answers,
    readonly interactions: Interactions,
    readonly harness: Pick<Harness, "id" | "ownTools">,
    readonly emit: (event: AgentEvent) => void,
  ) {
    this.#tools = toolsNamed(request, harness);
  }

  /** What is published to the agent; what the request's rules are about is known with that. */
  learn(published: Iterable<string>): readonly Warning[] {
    const { own, published: before } = this.#tools;
    this.#tools = { own, published: new Set([...before, ...published]) };
    return idleRules(this.request, this.harness.id, this.#tools);
  }

  /** Whether no answer could allow it. */
  denies(call: WantedCall): boolean {
    return this.#effective(call) === "deny";
  }

  /** The agent asks before it calls. */
  async question(call: WantedCall, signal: AbortSignal): Promise<PermissionAnswer> {
    const { verdict } = await this.#decide(call, signal);
    if (verdict === "allow" && this.#effective(call) === "ask") {
      this.#granted.add(call.name, call.input, { output: { approved: true }, isError: false });
    }
    return verdict;
  }

  /** A call of ours is about to be executed. */
  async execution(call: WantedCall, signal: AbortSignal): Promise<Verdict> {
    if (this.#effective(call) === "ask" && this.#granted.take("approval", call.name, call.input)) {
      return { verdict: "allow" };
    }
    return this.#decide(call, signal);
  }

  async #decide(call: WantedCall, signal: AbortSignal): Promise<Verdict> {
    const effective = this.#effective(call);
    if (effective === "allow") return { verdict: "allow" };
    if (effective === "deny") return { verdict: "deny", why: `Tool '${call.name}' is denied by policy.` };
    const stored = this.answers.take("approval", call.name, call.input);
    const answered =
      stored === undefined
        ? await this.interactions.ask("user_approval", payloadOf(call), signal)
        : { id: call.toolCallId, answer: stored };
    if (answered === undefined) return { verdict: "park" };
    const approved = approvalIn(answered.answer) === true;
    const payload = { toolCallId: call.toolCallId, toolName: call.name, approved };
    this.emit({ type: "interaction_response", id: answered.id, kind: "user_approval", payload });
    return approved
      ? { verdict: "allow" }
      : { verdict: "deny", why: `The user did not approve tool '${call.name}'.` };
  }

  #effective({ name, tool, server, saysReadOnly, toolClass, input, byCaller }: WantedCall): Permission {
    const isAgents = tool === undefined && server === undefined;
    const subject = {
      name,
      classNames: isAgents ? classNamesOf(name, toolClass, this.#tools) : undefined,
      tool: tool?.permission,
      server: server?.policy?.permission,
      readOnly: isAgents ? saysReadOnly : tool?.readOnly,
      // Of a published tool it is decided again where it is executed, by its real arguments.
      arguments: isAgents ? input : (input ?? {}),
      inputSchema: tool?.inputSchema,
    };
    const permission = permissionOf(subject, this.request.permissions, this.ceiling);
    return permission === "ask" && byCaller === true ? "allow" : permission;
  }
}

/** What the user gets to see of a call. */
export function payloadOf({ toolCallId, name, input, tool }: WantedCall): object {
  return {
    toolCallId,
    toolName: name,
    input,
    ...(tool?.render === undefined ? {} : { render: tool.render }),
  };
}
