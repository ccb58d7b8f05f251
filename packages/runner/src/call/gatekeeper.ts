import type { Denier, InteractionPayload } from "@ambit/core/contract";
import { canonicalJson } from "../json-values.js";
import type { Ask } from "./ask/ask.js";
import type { Question } from "./ask/question.js";
import type { CallPermissions } from "./permission/permissions.js";
import type { ApprovedCalls } from "./reports/approved-calls.js";
import type { RunTools } from "./tools/run-tools.js";
import {
  type AnswerUse,
  approvalIn,
  type InteractionKind,
  type KnownOutcome,
  type UserAnswer,
} from "./values/answer.js";
import { type Call, type CallSubject, comparable } from "./values/call.js";

export type CallDecision =
  /** `use`: of the user's answer that allows it, which is claimed. */
  | { readonly verdict: "allow"; readonly use?: AnswerUse | undefined }
  | { readonly verdict: "deny"; readonly why: string; readonly by: Denier }
  /** It was made in an earlier turn, and no model has seen what it came to. */
  | { readonly verdict: "made"; readonly outcome: KnownOutcome }
  /** The agent took its question back. */
  | { readonly verdict: "withdrawn" }
  /** The run pauses for its user. */
  | { readonly verdict: "park" };

/** A decision before the call is made: the answer isn't claimed yet. */
type Consent = Exclude<CallDecision, { verdict: "deny" | "park" | "withdrawn" }>;

/**
 * Decides whether a call may be made: when the agent asks, and again where it is executed, since what a sandbox says
 * isn't trusted. A consent holds for one call with the same arguments.
 */
export class Gatekeeper {
  /** What the agent's questions came to, by call. The executions that follow use it. */
  readonly #consents = new Map<string, Consent[]>();

  constructor(
    private readonly permissions: Pick<CallPermissions, "effective" | "denial">,
    private readonly tools: Pick<RunTools, "details">,
    private readonly ask: Pick<Ask, "ask">,
    private readonly approved: ApprovedCalls,
  ) {}

  /** The agent asks before it calls. @param withdrawn aborts when it takes the question back. */
  async beforeCall(call: Call, signal: AbortSignal, withdrawn?: AbortSignal): Promise<CallDecision> {
    for (;;) {
      const decision = await this.#decide(call, signal, withdrawn);
      if (decision.verdict !== "allow" && decision.verdict !== "made") return decision;
      if (call.origin === "agent") {
        // An outcome can't be handed to the agent, which executes the call itself: so none is kept of such a call.
        if (decision.verdict === "made" || !(await claimed(decision))) continue;
        if (decision.use !== undefined) this.approved.begun(call.id, decision.use);
      } else if (this.permissions.effective(call) === "ask") {
        const key = consentKey(call);
        this.#consents.set(key, [...(this.#consents.get(key) ?? []), decision]);
      }
      return { verdict: "allow" };
    }
  }

  /** A published tool is about to be executed. */
  async atExecution(call: Call, signal: AbortSignal): Promise<CallDecision> {
    for (;;) {
      const consent = this.permissions.effective(call) === "ask" ? this.#useConsent(call) : undefined;
      const decision = consent ?? (await this.#decide(call, signal));
      if (decision.verdict !== "allow") return decision;
      if (!(await claimed(decision))) continue;
      if (decision.use !== undefined) this.approved.executing(decision.use);
      return decision;
    }
  }

  /** The user fulfils the call. Undefined: the run pauses for it. */
  async fulfilment(
    kind: InteractionKind,
    call: Call,
    signal: AbortSignal,
  ): Promise<{ readonly outcome: KnownOutcome; readonly use?: AnswerUse } | undefined> {
    for (;;) {
      const reply = await this.ask.ask(
        this.#questionAbout(kind, call, (answer) => ({ value: outcomeOf(answer), response: {} })),
        signal,
      );
      if (reply === undefined || reply === "withdrawn") return undefined;
      if ("outcome" in reply) return { outcome: reply.outcome };
      if (await reply.use.claim()) return { outcome: reply.value, use: reply.use };
    }
  }

  async #decide(call: Call, signal: AbortSignal, withdrawn?: AbortSignal): Promise<CallDecision> {
    for (;;) {
      const permission = this.permissions.effective(call);
      if (permission === "allow") return { verdict: "allow" };
      if (permission === "deny") return { verdict: "deny", ...this.permissions.denial(call) };
      const reply = await this.ask.ask({ ...this.#approvalOf(call), withdrawn }, signal);
      if (reply === undefined) return { verdict: "park" };
      if (reply === "withdrawn") return { verdict: "withdrawn" };
      if ("outcome" in reply) {
        if (reply.outcome.denied === undefined) return { verdict: "made", outcome: reply.outcome };
        return { verdict: "deny", why: reply.outcome.output, by: "user" };
      }
      if (reply.value) return { verdict: "allow", use: reply.use };
      if (!(await reply.use.claim())) continue;
      const why = `The user did not approve tool '${call.name}'.`;
      await reply.use.spend({ output: why, isError: true, denied: true });
      this.approved.keep(reply.use);
      return { verdict: "deny", why, by: "user" };
    }
  }

  #useConsent(call: Call): Consent | undefined {
    const key = consentKey(call);
    const [first, ...others] = this.#consents.get(key) ?? [];
    if (others.length > 0) this.#consents.set(key, others);
    else this.#consents.delete(key);
    return first;
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
    return { kind, origin, name, input, call, details: this.tools.details(call), read };
  }
}

/** Whether its answer, if there is one, is this call's now. */
async function claimed({ use }: { readonly use?: AnswerUse | undefined }): Promise<boolean> {
  return use === undefined || (await use.claim());
}

function outcomeOf({ output, isError }: UserAnswer): KnownOutcome {
  return { output: typeof output === "string" ? output : canonicalJson(output), isError };
}

function consentKey({ origin, name, input }: CallSubject): string {
  return canonicalJson([origin, name, comparable(input)]);
}
