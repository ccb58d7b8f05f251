import { createHash } from "node:crypto";
import { HarnessFailed } from "@ambit/core";
import type { AgentEvent, AgentEventOf } from "@ambit/core/contract";
import type { PublishedOutcome } from "@ambit/core/plugin";
import { canonicalJson } from "../canonical-json.js";
import { sizeOf } from "../lifetime/memory/size.js";
import { unsettled } from "./settling.js";

/** A call as we dealt with it: when the agent asked, or where it was executed. */
export interface HandledCall {
  /** `allowed`: the agent may run it · `executing`: we do · `parked`: it waits for the user · `finished`. */
  state: "allowed" | "executing" | "parked" | "finished";
  denied?: boolean;
  /** For the user interface, not for the model. */
  data?: unknown;
  /** What the agent was told, once it is finished. */
  outcome?: PublishedOutcome;
}

interface Entry {
  readonly id: string;
  readonly key: string;
  readonly call: HandledCall;
  /** Whether the call that reached us without an id was taken for this one. */
  claimed?: true;
}

/** Calls whose result the agent never reports are forgotten, the oldest first. */
const mostHandled = 256;
/** Characters of what such calls came to; beyond, the oldest are forgotten too. */
const mostKept = 4_194_304;
/** Characters of the ids and names of calls that are open. */
const mostNamed = 1_048_576;

/**
 * Brings together the two accounts of one call: what the agent reports of it in its events, and what we did. They
 * meet by the agent's id of the call where it sends one, else by name and arguments.
 */
export class CallLedger {
  readonly #reported = new Map<string, { readonly name: string; readonly key: string; claimed?: true }>();
  readonly #handled: Entry[] = [];
  #named = 0;
  #kept = 0;

  constructor(
    /** Calls that the agent may have open at once. */
    readonly mostOpen: number,
  ) {}

  /** The agent reports a call; again when it knows more of it. @throws HarnessFailed for one too many */
  report(id: string, name: string, input: unknown): void {
    const claimed = this.#reported.get(id)?.claimed;
    this.#forget(id);
    this.#named += id.length + name.length;
    if (this.#reported.size >= this.mostOpen || this.#named > mostNamed) {
      throw new HarnessFailed(
        `The agent reported more tool calls without their results than a run may have (${this.mostOpen}).`,
      );
    }
    this.#reported.set(id, { name, key: callKey(name, input), ...(claimed ? { claimed } : {}) });
  }

  /**
   * The agent's id of a call that reached us without one, if it has asked about or reported just that call. Each is
   * given once.
   */
  claimId(name: string, input: unknown): string | undefined {
    const key = callKey(name, input);
    const asked = this.#handled.find(
      (entry) => entry.key === key && entry.call.state === "allowed" && entry.claimed !== true,
    );
    if (asked !== undefined) {
      asked.claimed = true;
      return asked.id;
    }
    for (const [id, reported] of this.#reported) {
      const isTaken = reported.claimed || this.#handled.some((entry) => entry.id === shortId(id));
      if (reported.key !== key || isTaken) continue;
      reported.claimed = true;
      return id;
    }
    return undefined;
  }

  /** We deal with a call. The same call, once asked about and then executed, is one. */
  handle(id: string, name: string, input: unknown, state: HandledCall["state"]): HandledCall {
    const key = callKey(name, input);
    const asked = this.#handled.find(
      (entry) => entry.call.state === "allowed" && (entry.id === shortId(id) || entry.key === key),
    );
    if (asked !== undefined) {
      asked.call.state = state;
      return asked.call;
    }
    const call: HandledCall = { state };
    this.#handled.push({ id: shortId(id), key, call });
    this.#forgetOldest();
    return call;
  }

  /** A call came to its end: what the agent was told, and what else is told of it. */
  finish(call: HandledCall, outcome: PublishedOutcome): void {
    call.state = "finished";
    call.outcome = outcome;
    this.#kept += sizeOfOutcome(call);
    this.#forgetOldest();
  }

  /** Whether a result only says that the agent was stopped: the call waits for the user, or we saw no end of it. */
  isCutOff({ id, isError }: AgentEventOf<"tool_result">): boolean {
    const reported = this.#reported.get(id);
    if (reported === undefined) return false;
    const handled = this.#handled.find(
      (entry) => entry.id === shortId(id) || entry.key === reported.key,
    )?.call;
    if (handled?.state === "parked") return true;
    return isError === true && handled?.outcome === undefined && handled?.denied !== true;
  }

  /** The agent reports a result: what we know of that call, whose accounts are closed with this. */
  settle(id: string): { readonly name: string; readonly handled?: HandledCall } | undefined {
    const reported = this.#reported.get(id);
    if (reported === undefined) return undefined;
    this.#forget(id);
    const handled = this.#take(id, reported.key);
    return handled === undefined ? { name: reported.name } : { name: reported.name, handled };
  }

  /** Results for what the agent reported and gave no result of. A call that waits for the user has none yet. */
  settleOpen(why: "paused" | "interrupted"): AgentEventOf<"tool_result">[] {
    return [...this.#reported.keys()].flatMap((id) => {
      const handled = this.settle(id)?.handled;
      if (handled?.outcome !== undefined) return [{ type: "tool_result" as const, id, ...told(handled) }];
      if (why === "interrupted") return [unsettled(id, "interrupted")];
      if (handled?.state === "parked") return [];
      return [unsettled(id, handled === undefined ? "deferred" : "unknown")];
    });
  }

  #forget(id: string): void {
    const reported = this.#reported.get(id);
    if (reported === undefined) return;
    this.#named -= id.length + reported.name.length;
    this.#reported.delete(id);
  }

  #forgetOldest(): void {
    while (this.#handled.length > mostHandled || this.#kept > mostKept) {
      const oldest = this.#handled.findIndex(
        ({ call }) => call.state === "finished" || call.state === "allowed",
      );
      if (oldest < 0) return;
      this.#remove(oldest);
    }
  }

  #remove(index: number): HandledCall | undefined {
    const call = this.#handled.splice(index, 1)[0]?.call;
    if (call?.outcome !== undefined) this.#kept -= sizeOfOutcome(call);
    return call;
  }

  #take(id: string, key: string): HandledCall | undefined {
    const byId = this.#handled.findIndex((entry) => entry.id === shortId(id));
    const index = byId < 0 ? this.#handled.findIndex((entry) => entry.key === key) : byId;
    return index < 0 ? undefined : this.#remove(index);
  }
}

/**
 * What a result's event says of a call that we dealt with. Our own words and data stand in place of the agent's: it
 * wraps them in its own way. What it failed itself, as when it gave a call up, is its own account, but not under an
 * id that we issued (`isIssued`).
 */
export function accountOf(
  event: AgentEventOf<"tool_result">,
  { outcome, ...ours }: HandledCall,
  isIssued: boolean,
): AgentEventOf<"tool_result"> {
  const gaveUp = !isIssued && event.isError === true && outcome?.isError !== true;
  if (outcome === undefined || gaveUp) return { ...event, ...told(ours) };
  const { data: _wrapping, ...reported } = event;
  const { output, isError } = outcome;
  const failed = isError || event.isError === true ? { isError } : {};
  return { ...reported, output, ...failed, ...told(ours) };
}

/** What a result's event says beside what the agent reports. */
export function told({ denied, data, outcome }: HandledCall): Partial<AgentEventOf<"tool_result">> {
  return {
    ...(outcome === undefined ? {} : { output: outcome.output, isError: outcome.isError }),
    ...(denied === true ? { denied: true, isError: true } : {}),
    ...(data === undefined ? {} : { data }),
  };
}

/** Only what an agent reports by name can be told apart from its other calls. */
export function isNamedCall(event: AgentEvent): event is AgentEventOf<"tool_call"> & { name: string } {
  return event.type === "tool_call" && event.name !== undefined;
}

/** One text for equal calls. A digest: arguments may be long, and nothing but their equality counts. */
export function callKey(name: string, input: unknown): string {
  return createHash("sha256")
    .update(`${name} ${canonicalJson(input ?? {})}`)
    .digest("base64url");
}

/** An id as it is compared: what an agent sends for one may be long. */
function shortId(id: string): string {
  return id.length <= 128 ? id : createHash("sha256").update(id).digest("base64url");
}

function sizeOfOutcome({ outcome, data }: HandledCall): number {
  return (outcome?.output.length ?? 0) + (data === undefined ? 0 : sizeOf(data));
}
