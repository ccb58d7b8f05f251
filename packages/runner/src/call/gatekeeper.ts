import type { PermissionDecision } from "@ambit/core/plugin";
import { inject, injectable } from "tsyringe";
import { canonicalJson } from "../canonical-json.js";
import { approvalIn } from "./ask/answer.js";
import { Questions } from "./ask/questions.js";
import type { CallSubject } from "./call-subject.js";
import { Permissions } from "./permission/permissions.js";
import { comparable } from "./same-arguments.js";

export type Decision =
  | { readonly verdict: "allow" }
  | { readonly verdict: "deny"; readonly why: string }
  | { readonly verdict: "park" };

/**
 * Decides whether a call may be made: when the agent asks, and again where it is executed, since what a sandbox says
 * isn't trusted. A consent holds for one call with the same arguments.
 */
@injectable()
export class Gatekeeper {
  /** The number of consents that the agent's questions took, by call. The executions that follow use them. */
  readonly #granted = new Map<string, number>();

  constructor(
    @inject(Permissions) readonly permissions: Pick<Permissions, "effective">,
    @inject(Questions) readonly questions: Pick<Questions, "put" | "answered">,
  ) {}

  /** The agent asks before it calls. */
  async question(call: CallSubject, signal: AbortSignal): Promise<PermissionDecision> {
    const { verdict } = await this.#decide(call, signal);
    if (verdict === "allow" && this.permissions.effective(call) === "ask") {
      const key = consentKey(call);
      this.#granted.set(key, (this.#granted.get(key) ?? 0) + 1);
    }
    return verdict;
  }

  /** A published tool is about to be executed. */
  async execution(call: CallSubject, signal: AbortSignal): Promise<Decision> {
    if (this.permissions.effective(call) === "ask" && this.#takeGrant(consentKey(call)))
      return { verdict: "allow" };
    return this.#decide(call, signal);
  }

  async #decide(call: CallSubject, signal: AbortSignal): Promise<Decision> {
    const effective = this.permissions.effective(call);
    if (effective === "allow") return { verdict: "allow" };
    if (effective === "deny")
      return { verdict: "deny", why: call.denial ?? `Tool '${call.name}' is denied by policy.` };
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

function consentKey({ origin, name, input }: CallSubject): string {
  return canonicalJson([origin, name, comparable(input)]);
}
