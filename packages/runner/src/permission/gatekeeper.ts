import {
  type McpServer,
  ownServerName,
  type Permission,
  type RunRequest,
  type ToolSpec,
  type Warning,
} from "@ambit/core/contract";
import type { Harness, PermissionAnswer, PermissionQuestion, ToolClass } from "@ambit/core/plugin";
import { canonicalJson } from "../canonical-json.js";
import { approvalIn } from "./interaction/answers.js";
import type { CallOrigin } from "./interaction/call-ids.js";
import type { Questions } from "./interaction/questions.js";
import { classNamesOf, idleRules, type KnownTools, toolsNamed } from "./known-tools.js";
import { type PermissionCeiling, permissionOf } from "./permission.js";

/** A call that somebody wants to make. */
export interface WantedCall {
  readonly toolCallId: string;
  readonly name: string;
  readonly origin: CallOrigin;
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
  const origin = tool !== undefined ? "request" : serverName === undefined ? "agent" : { server: serverName };
  return { toolCallId, name, origin, input, tool, server, saysReadOnly: readOnly, toolClass };
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
  /** How many consents the agent's questions took, by call; the executions that follow use them. */
  readonly #granted = new Map<string, number>();
  #tools: KnownTools;

  constructor(
    readonly request: RunRequest,
    readonly ceiling: PermissionCeiling,
    readonly harness: Pick<Harness, "id" | "ownTools" | "supportsPermissionRequests">,
    readonly questions: Pick<Questions, "put" | "answered">,
  ) {
    this.#tools = toolsNamed(request, harness);
  }

  /** What is published to the agent; what the request's rules are about is known with that. */
  learn(published: Iterable<string>): readonly Warning[] {
    const { own, published: before } = this.#tools;
    this.#tools = { own, published: new Set([...before, ...published]) };
    return idleRules(this.request, this.harness.id, this.#tools);
  }

  /** The permission in force for a call. */
  effective({ name, tool, server, saysReadOnly, toolClass, input, byCaller }: WantedCall): Permission {
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

  /** Whether a call that the agent reports may have to ask, as far as it is known whose it is. */
  mayAsk(
    name: string,
    input: unknown,
    tool: ToolSpec | undefined,
    servers: ReadonlyMap<string, McpServer>,
  ): boolean {
    const wanted = { toolCallId: "", origin: "agent", name, input, tool } as const;
    if (tool !== undefined) return this.effective(wanted) === "ask";
    if (servers.size === 0 && !this.harness.supportsPermissionRequests) return false;
    return [undefined, ...servers.values()].some((server) => this.effective({ ...wanted, server }) === "ask");
  }

  /** The agent asks before it calls. */
  async question(call: WantedCall, signal: AbortSignal): Promise<PermissionAnswer> {
    const { verdict } = await this.#decide(call, signal);
    if (verdict === "allow" && this.effective(call) === "ask") {
      const key = keyOf(call);
      this.#granted.set(key, (this.#granted.get(key) ?? 0) + 1);
    }
    return verdict;
  }

  /** A call of ours is about to be executed. */
  async execution(call: WantedCall, signal: AbortSignal): Promise<Verdict> {
    if (this.effective(call) === "ask" && this.#takeGrant(keyOf(call))) return { verdict: "allow" };
    return this.#decide(call, signal);
  }

  async #decide(call: WantedCall, signal: AbortSignal): Promise<Verdict> {
    const effective = this.effective(call);
    if (effective === "allow") return { verdict: "allow" };
    if (effective === "deny") return { verdict: "deny", why: `Tool '${call.name}' is denied by policy.` };
    const answered = await this.questions.put("user_approval", call, signal);
    if (answered === undefined) return { verdict: "park" };
    const approved = approvalIn(answered.answer) === true;
    this.questions.answered(answered, "user_approval", call, { approved });
    return approved
      ? { verdict: "allow" }
      : { verdict: "deny", why: `The user did not approve tool '${call.name}'.` };
  }

  #takeGrant(key: string): boolean {
    const granted = this.#granted.get(key) ?? 0;
    if (granted > 1) this.#granted.set(key, granted - 1);
    else this.#granted.delete(key);
    return granted > 0;
  }
}

function keyOf({ origin, name, input }: WantedCall): string {
  return canonicalJson([origin, name, input ?? {}]);
}
