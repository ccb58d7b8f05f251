import { randomUUID } from "node:crypto";
import type { AgentEvent, McpServer, RunRequest, ToolSpec } from "../contract/index.js";
import type { PermissionAnswer, PermissionQuestion } from "../plugin/index.js";
import { Answers } from "./answers.js";
import { type PermissionCeiling, permissionOf } from "./permission.js";

/** A call that somebody wants to make. */
export interface WantedCall {
  readonly toolCallId: string;
  readonly name: string;
  readonly input: unknown;
  /** The tool of the request, if it is one; else the agent's own. */
  readonly tool?: ToolSpec | undefined;
  readonly server?: McpServer | undefined;
  readonly readOnly?: boolean | undefined;
  /** Fulfilled by the user: answering it *is* the user's consent. */
  readonly byCaller?: boolean | undefined;
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
  readonly #asked = new Set<string>();

  constructor(
    readonly request: RunRequest,
    readonly ceiling: PermissionCeiling,
    readonly answers: Answers,
    readonly emit: (event: AgentEvent) => void,
  ) {}

  /** The agent asks before it calls. */
  question(question: PermissionQuestion, call: WantedCall): PermissionAnswer {
    const verdict = this.#decide({ ...call, readOnly: call.tool?.readOnly ?? question.readOnly });
    if (verdict.verdict === "allow" && this.#effective(call) === "ask") {
      this.#granted.add(call.name, call.input, { kind: "approval", approved: true });
    }
    return verdict.verdict;
  }

  /** A call of ours is about to be executed. */
  execution(call: WantedCall): Verdict {
    if (this.#effective(call) === "ask" && this.#granted.take("approval", call.name, call.input)) {
      return { verdict: "allow" };
    }
    return this.#decide(call);
  }

  #decide(call: WantedCall): Verdict {
    const effective = this.#effective(call);
    if (effective === "allow") return { verdict: "allow" };
    if (effective === "deny") return { verdict: "deny", why: `Tool '${call.name}' is denied by policy.` };
    const answer = this.answers.take("approval", call.name, call.input);
    if (answer === undefined) {
      this.#ask(call);
      return { verdict: "park" };
    }
    this.emit({
      type: "interaction_response",
      id: call.toolCallId,
      kind: "user_approval",
      payload: { toolName: call.name, approved: answer.approved },
    });
    if (answer.approved) return { verdict: "allow" };
    return { verdict: "deny", why: `The user did not approve tool '${call.name}'.` };
  }

  #effective(call: WantedCall) {
    const permission = permissionOf(
      {
        name: call.name,
        tool: call.tool?.permission,
        server: call.server?.policy?.permission,
        readOnly: call.readOnly ?? call.tool?.readOnly,
        arguments: call.input,
      },
      this.request.permissions,
      this.ceiling,
    );
    return permission === "ask" && call.byCaller === true ? "allow" : permission;
  }

  #ask(call: WantedCall): void {
    if (this.#asked.has(call.toolCallId)) return;
    this.#asked.add(call.toolCallId);
    const { toolCallId, name: toolName, input, tool } = call;
    this.emit({
      type: "interaction_request",
      id: randomUUID(),
      kind: "user_approval",
      payload: {
        toolCallId,
        toolName,
        input,
        ...(tool?.render === undefined ? {} : { render: tool.render }),
      },
    });
  }
}
