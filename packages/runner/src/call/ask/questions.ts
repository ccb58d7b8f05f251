import type { InteractionPayload } from "@ambit/core/contract";
import { inject, injectable } from "tsyringe";
import { RunEvents } from "../../events/run-events.js";
import { AgentCalls } from "../agent-calls.js";
import { CallEvents } from "../call-events.js";
import type { CallSubject } from "../call-subject.js";
import type { InteractionKind } from "./answer.js";
import type { Answered } from "./answers.js";
import { Asking } from "./asking.js";
import type { AskedCall } from "./call-ids.js";

/** The questions of a run about its calls, and their answers, from the request's messages or live. */
@injectable()
export class Questions {
  constructor(
    @inject(Asking) readonly asking: Asking,
    @inject(AgentCalls) readonly calls: AgentCalls,
    @inject(CallEvents) readonly callEvents: CallEvents,
    @inject(RunEvents) readonly events: RunEvents,
  ) {}

  /**
   * The user's answer for this call, which is announced before any other event of the call. Undefined if the run has to
   * pause for it.
   */
  async put(kind: InteractionKind, call: CallSubject, signal: AbortSignal): Promise<Answered | undefined> {
    const stored = await this.asking.answers().take(askedCall(kind, call));
    if (stored !== undefined) {
      await this.callEvents.reported(call, signal);
      this.callEvents.announce(call);
      return stored;
    }
    return this.#ask(kind, call, signal);
  }

  /**
   * Asks about a call that arrived while the turn was pausing for another one: the user can answer both at once.
   * Doesn't ask if there is an answer already: it is for the call that the agent repeats in its next turn.
   * @returns whether it was asked.
   */
  async ask(kind: InteractionKind, call: CallSubject, pausing: AbortSignal): Promise<boolean> {
    if (this.asking.answers().holds(askedCall(kind, call))) return false;
    await this.#ask(kind, call, pausing);
    return true;
  }

  async #ask(kind: InteractionKind, call: CallSubject, signal: AbortSignal): Promise<Answered | undefined> {
    const { asking, calls, callEvents } = this;
    const asked = askedCall(kind, call);
    const id = (await asking.ids()).issue(asked);
    await callEvents.reported(call, signal);
    callEvents.announce(call, id);
    calls.step(call.id, { step: "ask" });
    const answer = await asking.interactions.ask({ id, kind, payload: payloadOf(call, id) }, signal);
    calls.step(call.id, { step: answer === undefined ? "park" : "answer" });
    if (answer === undefined) return undefined;
    // It allowed this call. If later messages repeat it, it allows no other one.
    await asking.use(id);
    return { id, answer };
  }

  /** Reports the outcome of a question. */
  answered({ id }: Answered, kind: InteractionKind, call: CallSubject, more: InteractionPayload = {}): void {
    const payload = { ...namesOf(call, this.callEvents.publicIdOf(call.id)), ...more };
    this.events.emit({ type: "interaction_response", id, kind, payload });
  }
}

function askedCall(kind: InteractionKind, { origin, name, input }: CallSubject): AskedCall {
  return { kind, origin, name, input };
}

/** What the user sees of a call. */
function payloadOf(call: CallSubject, id: string): InteractionPayload {
  const { input, tool, files } = call;
  const render = tool?.render === undefined ? {} : { render: tool.render };
  return { ...call.details, ...files, ...namesOf(call, id), input, ...render };
}

function namesOf({ name, origin }: CallSubject, toolCallId: string): InteractionPayload {
  return { toolCallId, toolName: name, ...(typeof origin === "string" ? {} : { server: origin.server }) };
}
