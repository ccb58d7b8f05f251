import type { AgentEvent } from "@ambit/core/contract";
import type { WantedCall } from "../gatekeeper.js";
import type { Announcements } from "./announcements.js";
import type { Answered, Answers } from "./answers.js";
import type { CallIds } from "./call-ids.js";
import type { InteractionKind, Interactions } from "./interactions.js";
import type { UsedAnswers } from "./used-answers.js";

export interface QuestionsOptions {
  /** The ids of this run. */
  readonly ids: () => Promise<CallIds>;
  readonly used: UsedAnswers;
  /** What the request's messages bring. */
  readonly answers: () => Answers;
  readonly interactions: Interactions;
  readonly announcements: Announcements;
  readonly emit: (event: AgentEvent) => void;
}

/** What a run asks its user about its calls, and the answers: brought by the request's messages, or live. */
export class Questions {
  constructor(readonly options: QuestionsOptions) {}

  /**
   * The user's answer for this call, which is announced before anything is said of it. Undefined when the run has to
   * pause for it.
   */
  async put(kind: InteractionKind, call: WantedCall, signal: AbortSignal): Promise<Answered | undefined> {
    const { ids, used, answers, interactions, announcements } = this.options;
    const { origin, name, input } = call;
    const asked = { kind, origin, name, input };
    const stored = answers().take(asked);
    if (stored !== undefined) {
      announcements.announce(call);
      return stored;
    }
    const id = (await ids()).issue(asked);
    announcements.announce(call, id);
    const answer = await interactions.ask({ id, kind, payload: payloadOf(call, id) }, signal);
    if (answer === undefined) return undefined;
    announcements.answered(call.toolCallId);
    // It allowed this call: brought again by later messages, it allows no other.
    used.use(id);
    return { id, answer };
  }

  /** Tells what became of a question. */
  answered({ id }: Answered, kind: InteractionKind, call: WantedCall, more: object = {}): void {
    const { announcements, emit } = this.options;
    const payload = { ...namesOf(call, announcements.idOf(call.toolCallId)), ...more };
    emit({ type: "interaction_response", id, kind, payload });
  }
}

/** What the user gets to see of a call. */
function payloadOf(call: WantedCall, id: string): object {
  const { input, tool } = call;
  return { ...namesOf(call, id), input, ...(tool?.render === undefined ? {} : { render: tool.render }) };
}

function namesOf({ name, origin }: WantedCall, toolCallId: string): object {
  return { toolCallId, toolName: name, ...(typeof origin === "string" ? {} : { server: origin.server }) };
}
