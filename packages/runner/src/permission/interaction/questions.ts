import { inject, injectable } from "tsyringe";
import { AgentCalls } from "../../calls/agent-calls.js";
import { CallEvents } from "../../calls/call-events.js";
import type { CallSubject } from "../../calls/call-subject.js";
import { RunEvents } from "../../events/run-events.js";
import type { Answered } from "./answers.js";
import { Asking } from "./asking.js";
import type { InteractionKind } from "./interactions.js";
import { UsedAnswers } from "./used-answers.js";

/** What a run asks its user about its calls, and the answers: brought by the request's messages, or live. */
@injectable()
export class Questions {
  constructor(
    @inject(Asking) readonly asking: Asking,
    @inject(UsedAnswers) readonly used: UsedAnswers,
    @inject(AgentCalls) readonly calls: AgentCalls,
    @inject(CallEvents) readonly callEvents: CallEvents,
    @inject(RunEvents) readonly events: RunEvents,
  ) {}

  /**
   * The user's answer for this call, which is announced before anything is said of it. Undefined when the run has to
   * pause for it.
   */
  async put(kind: InteractionKind, call: CallSubject, signal: AbortSignal): Promise<Answered | undefined> {
    const { asking, calls, callEvents } = this;
    const { origin, name, input } = call;
    const asked = { kind, origin, name, input };
    const stored = await asking.answers().take(asked);
    if (stored !== undefined) {
      callEvents.announce(call);
      return stored;
    }
    const id = (await asking.ids()).issue(asked);
    callEvents.announce(call, id);
    calls.step(call.id, { step: "ask" });
    const answer = await asking.interactions.ask({ id, kind, payload: payloadOf(call, id) }, signal);
    calls.step(call.id, { step: answer === undefined ? "park" : "answer" });
    if (answer === undefined) return undefined;
    // It allowed this call: brought again by later messages, it allows no other.
    await this.used.use(id);
    return { id, answer };
  }

  /** Tells what became of a question. */
  answered({ id }: Answered, kind: InteractionKind, call: CallSubject, more: object = {}): void {
    const payload = { ...namesOf(call, this.callEvents.publicIdOf(call.id)), ...more };
    this.events.emit({ type: "interaction_response", id, kind, payload });
  }
}

/** What the user gets to see of a call. */
function payloadOf(call: CallSubject, id: string): object {
  const { input, tool } = call;
  return { ...namesOf(call, id), input, ...(tool?.render === undefined ? {} : { render: tool.render }) };
}

function namesOf({ name, origin }: CallSubject, toolCallId: string): object {
  return { toolCallId, toolName: name, ...(typeof origin === "string" ? {} : { server: origin.server }) };
}
