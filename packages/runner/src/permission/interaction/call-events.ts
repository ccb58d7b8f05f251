import type { AgentEvent, AgentEventOf, ToolSpec } from "@ambit/core/contract";
import { canonicalJson } from "../../canonical-json.js";
import { accountOf, CallLedger, isNamedCall } from "../../tools/call-ledger.js";
import { unsettled } from "../../tools/settling.js";
import { Announcements } from "./announcements.js";
import { approvalIn } from "./answers.js";
import { looksIssued } from "./call-ids.js";

export interface CallEventsOptions {
  /** The request's own tools. */
  readonly tools: ReadonlyMap<string, ToolSpec>;
  /** Whether the user may have to be asked about a call that the agent reports. */
  readonly mayAsk: (name: string, input: unknown) => boolean;
  /** Aborts when the turn pauses. */
  readonly pausing: AbortSignal;
  readonly emit: (event: AgentEvent) => void;
  /** Calls that the agent may have open at once. */
  readonly mostOpen: number;
}

/** What is told of a run's calls: the agent's own events, completed with what only we know. */
export class CallEvents {
  readonly ledger: CallLedger;
  readonly announcements: Announcements;

  constructor(readonly options: CallEventsOptions) {
    this.ledger = new CallLedger(options.mostOpen);
    this.announcements = new Announcements(
      (event) => options.emit(this.#shown(event)),
      ({ toolCallId, name, input }) => this.ledger.report(toolCallId, name, input),
    );
  }

  /**
   * What to tell for an event of the agent: how a call is shown, whether it was denied. Nothing for what isn't so:
   * stopped by a pause, an agent fails every call that it still has open.
   */
  complete(event: AgentEvent): readonly AgentEvent[] {
    if (isNamedCall(event)) {
      this.announcements.adopt(event);
      this.ledger.report(this.announcements.known(event.id), event.name, event.input);
      const told = this.announcements.report(event, this.options.mayAsk(event.name, event.input));
      return told.map((one) => this.#shown(one));
    }
    if (event.type === "tool_result") return this.#result(event);
    if (event.type === "tool_call") return [{ ...event, id: this.announcements.idOf(event.id) }];
    return [event];
  }

  /** Tells the calls that are held back. */
  release(): readonly AgentEvent[] {
    return this.announcements.releaseAll().map((one) => this.#shown(one));
  }

  /** Ends the accounts of calls that the turn ended without. */
  settleOpen(why: "paused" | "interrupted"): readonly AgentEvent[] {
    const held = this.release();
    const results = this.ledger.settleOpen(why).map((result) => {
      const { publicId, asking } = this.announcements.settle(result.id);
      return asking ? unsettled(publicId, "deferred") : harmless({ ...result, id: publicId });
    });
    return [...held, ...results];
  }

  #result(reported: AgentEventOf<"tool_result">): readonly AgentEvent[] {
    const event = { ...reported, id: this.announcements.known(reported.id) };
    if (this.options.pausing.aborted && this.ledger.isCutOff(event)) return [];
    const settled = this.ledger.settle(event.id);
    const { before, publicId, asking } = this.announcements.settle(event.id);
    const shown = before.map((one) => this.#shown(one));
    // The agent gave it up before its user answered: what it says in its place is no result, and no answer either.
    if (asking) return [...shown, unsettled(publicId, "deferred")];
    if (settled === undefined) return [...shown, harmless({ ...event, id: publicId })];
    const { handled } = settled;
    const result = harmless({
      ...(handled === undefined ? event : accountOf(event, handled, looksIssued(publicId))),
      id: publicId,
    });
    return [...shown, withRender(result, this.options.tools.get(settled.name))];
  }

  #shown(event: AgentEvent): AgentEvent {
    return event.type === "tool_call" ? withRender(event, this.options.tools.get(event.name ?? "")) : event;
  }
}

function withRender<Event extends AgentEvent>(event: Event, tool: ToolSpec | undefined): Event {
  return tool?.render === undefined ? event : { ...event, render: tool.render };
}

/** Sent back under an id of ours, no result may read as the user's approval. */
function harmless(result: AgentEventOf<"tool_result">): AgentEventOf<"tool_result"> {
  const { id, data, ...said } = result;
  if (!looksIssued(id)) return result;
  const { output } = said;
  return {
    ...said,
    id,
    ...(isApproval(output) ? { output: canonicalJson(output) } : {}),
    // User interfaces show data in place of the output.
    ...(data === undefined || isApproval(data) ? {} : { data }),
  };
}

function isApproval(output: unknown): boolean {
  return approvalIn({ output, isError: false }) !== undefined;
}
