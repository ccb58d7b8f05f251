import type { InteractionPayload } from "@ambit/core/contract";
import { inject, injectable } from "tsyringe";
import { canonicalJson } from "../canonical-json.js";
import { Ask } from "./ask/ask.js";
import type { Question } from "./ask/question.js";
import { CallPermissions } from "./permission/permissions.js";
import { RequestTools } from "./tools/request-tools.js";
import { approvalIn, type InteractionKind, type UserAnswer } from "./values/answer.js";
import type { Call, CallSubject } from "./values/call.js";
import { comparable } from "./values/same-arguments.js";

export type CallDecision =
  | { readonly verdict: "allow" }
  | { readonly verdict: "deny"; readonly why: string }
  /** The run pauses for its user. */
  | { readonly verdict: "park" };

/**
 * Decides whether a call may be made: when the agent asks, and again where it is executed, since what a sandbox says
 * isn't trusted. A consent holds for one call with the same arguments.
 */
@injectable()
export class Gatekeeper {
  /** The number of consents that the agent's questions got, by call. The executions that follow use them. */
  readonly #consents = new Map<string, number>();

  constructor(
    @inject(CallPermissions) private readonly permissions: Pick<CallPermissions, "effective" | "denial">,
    @inject(RequestTools) private readonly requestTools: Pick<RequestTools, "details">,
    @inject(Ask) private readonly ask: Pick<Ask, "ask" | "alsoAsk">,
  ) {}

  /** The agent asks before it calls. */
  async beforeCall(call: Call, signal: AbortSignal): Promise<CallDecision> {
    const decision = await this.#decide(call, signal);
    if (decision.verdict === "allow" && this.permissions.effective(call) === "ask") {
      const key = consentKey(call);
      this.#consents.set(key, (this.#consents.get(key) ?? 0) + 1);
    }
    return decision;
  }

  /** A published tool is about to be executed. */
  async atExecution(call: Call, signal: AbortSignal): Promise<CallDecision> {
    if (this.permissions.effective(call) === "ask" && this.#useConsent(consentKey(call)))
      return { verdict: "allow" };
    return this.#decide(call, signal);
  }

  /** The turn pauses already: asks about this call too. @returns whether it was asked about */
  alsoAsk(call: Call): Promise<boolean> {
    return this.ask.alsoAsk(this.#approvalOf(call));
  }

  /** The user fulfils the call. Undefined: the run pauses for it. */
  fulfilment(kind: InteractionKind, call: Call, signal: AbortSignal): Promise<UserAnswer | undefined> {
    return this.ask.ask(
      this.#questionAbout(kind, call, (answer) => ({ value: answer, response: {} })),
      signal,
    );
  }

  async #decide(call: Call, signal: AbortSignal): Promise<CallDecision> {
    const permission = this.permissions.effective(call);
    if (permission === "allow") return { verdict: "allow" };
    if (permission === "deny") return { verdict: "deny", why: this.permissions.denial(call) };
    const isApproved = await this.ask.ask(this.#approvalOf(call), signal);
    if (isApproved === undefined) return { verdict: "park" };
    return isApproved
      ? { verdict: "allow" }
      : { verdict: "deny", why: `The user did not approve tool '${call.name}'.` };
  }

  #useConsent(key: string): boolean {
    const given = this.#consents.get(key) ?? 0;
    if (given > 1) this.#consents.set(key, given - 1);
    else this.#consents.delete(key);
    return given > 0;
  }

  #approvalOf(call: Call): Question<boolean> {
    return this.#questionAbout("user_approval", call, (answer) => {
      const approved = approvalIn(answer) === true;
      return { value: approved, response: { approved } };
    });
  }

  #questionAbout<Value>(
    kind: InteractionKind,
    call: Call,
    read: (answer: UserAnswer) => { readonly value: Value; readonly response: InteractionPayload },
  ): Question<Value> {
    const { origin, name, input } = call;
    return { kind, origin, name, input, call, details: this.requestTools.details(call), read };
  }
}

function consentKey({ origin, name, input }: CallSubject): string {
  return canonicalJson([origin, name, comparable(input)]);
}
