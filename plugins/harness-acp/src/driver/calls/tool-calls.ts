import { isDeepStrictEqual } from "node:util";
import { type AgentEvent, type FileChange, type FileLocation, HarnessFailed } from "@ambit/core/plugin";
import type { ToolCallView, ToolIdentity } from "../../profiles/profile.js";
import { type JsonRecord, textAt } from "../json-reading.js";
import { applyUpdate, type Call, hasContent, newCall, outputOf, viewOf, weightOf } from "./open-call.js";

/** Limits on the calls of one turn that have no result yet. */
export interface CallLimits {
  readonly openCalls: number;
  /** Characters of all of them. */
  readonly openCallCharacters: number;
}

export interface ToolCallsOptions extends CallLimits {
  readonly title: string;
  /** @param weight about how many characters the event holds. */
  emit(event: AgentEvent, weight: number): void;
  identify(call: ToolCallView): ToolIdentity;
}

export interface DescribedCall extends ToolIdentity {
  readonly readOnly: boolean;
  /** ACP's. */
  readonly kind: string | undefined;
  readonly changes: FileChange[];
  readonly locations: FileLocation[];
}

/** Characters of a call's id. */
const maxIdLength = 1_024;
/** How many finished calls are remembered by id, for late messages about them. */
const maxSettled = 4_096;

/**
 * The agent's tool calls of one turn. Agents announce a call twice, after its first update, or never. Here each id has
 * exactly one `tool_call` event, followed by one `tool_result`.
 */
export class ToolCalls {
  readonly #open = new Map<string, Call>();
  /** Characters of all open calls. */
  #weight = 0;
  readonly #settled = new Set<string>();
  readonly #options: ToolCallsOptions;
  /** Calls whose input may be incomplete: some agents send it only with the next update. */
  readonly #held = new Set<Call>();
  #any = false;

  constructor(options: ToolCallsOptions) {
    this.#options = options;
  }

  get any(): boolean {
    return this.#any;
  }

  /**
   * A `tool_call`, a `tool_call_update`, or the call in a permission request. Calls without an id are ignored.
   * @param size characters of the message it came in.
   * @throws HarnessFailed when the agent has more open than it may.
   */
  upsert(update: JsonRecord, size: number): void {
    const id = textAt(update, "toolCallId");
    if (id === undefined || id === "") return;
    const call = this.#call(id);
    if (call === undefined) return;
    const status = textAt(update, "status");
    const printed = this.#change(call, () => applyUpdate(call, update, size));
    if (call.announced === undefined) {
      const isNameless = call.name === undefined && call.title === undefined;
      // In ACP, the input of a pending call may still arrive.
      const waits = status === "pending" || (status === undefined && (isNameless || !hasContent(call.input)));
      if (waits) this.#held.add(call);
      else this.#announce(call, status !== undefined);
    }
    const isOver = status === "completed" || status === "failed";
    // The result has the output of a call that prints it with its end.
    if (printed !== "" && !isOver) this.#print(call, printed);
    if (isOver) this.#finish(call, status === "failed");
    else this.#bound();
  }

  /** Whether a call has its result. */
  isSettled(id: string): boolean {
    return this.#settled.has(id);
  }

  isInputReported(id: string): boolean {
    return hasContent(this.#open.get(id)?.input);
  }

  /** Announces a call with its tool and its known input. */
  describe(id: string): DescribedCall {
    const call = this.#call(id) ?? newCall(id);
    this.#announce(call, true);
    const identity = this.#identity(call);
    const { kind, changes, locations } = call;
    const readOnly = identity.readOnly ?? (kind === "read" || kind === "search");
    return { ...identity, readOnly, kind, changes, locations };
  }

  /** Emits every `tool_call` that waits for its input: another event follows, so it won't arrive in time. */
  release(): void {
    for (const call of this.#held) this.#announce(call, false);
  }

  /** Some agents never mention a denied call again. */
  deny(id: string): void {
    const call = this.#call(id);
    if (call === undefined) return;
    this.#announce(call, true);
    const output = `Tool '${this.#identity(call).name}' was denied.`;
    this.#options.emit({ type: "tool_result", id, output, isError: true, denied: true }, 0);
    this.#settle(call);
  }

  /** Ends every call without a result: the turn is over, and none will arrive. */
  settle(reason: string): void {
    this.release();
    for (const call of [...this.#open.values()]) {
      this.#options.emit({ type: "tool_result", id: call.id, output: reason, isError: true }, 0);
      this.#settle(call);
    }
  }

  /** Undefined for a call that has its result. */
  #call(id: string): Call | undefined {
    if (this.#settled.has(id)) return undefined;
    let call = this.#open.get(id);
    if (call === undefined) {
      if (id.length > maxIdLength)
        throw this.#tooMuch(`a call whose id has more than ${maxIdLength} characters`);
      call = newCall(id);
      this.#any = true;
      this.#open.set(id, call);
      this.#weight += weightOf(call);
    }
    return call;
  }

  #change(call: Call, change: () => string): string {
    this.#weight -= weightOf(call);
    const printed = change();
    this.#weight += weightOf(call);
    return printed;
  }

  #print(call: Call, delta: string): void {
    this.#announce(call, true);
    this.#options.emit({ type: "tool_output", id: call.id, delta }, 0);
  }

  #bound(): void {
    const { openCalls, openCallCharacters } = this.#options;
    if (this.#open.size > openCalls) throw this.#tooMuch(`more than ${openCalls} calls`);
    if (this.#weight > openCallCharacters) {
      throw this.#tooMuch(`calls of more than ${openCallCharacters} characters`);
    }
  }

  #tooMuch(what: string): HarnessFailed {
    return new HarnessFailed(`${this.#options.title} has ${what} open at once: its turn was ended.`);
  }

  /** @param complete whether the known input is final. */
  #announce(call: Call, complete: boolean): void {
    this.#held.delete(call);
    if (call.announced !== undefined) return;
    const { name, server, input } = this.#identity(call);
    // A published tool always has arguments: an agent that shows none has none.
    const shown = input ?? call.input ?? (server !== undefined && complete ? {} : undefined);
    const { locations } = call;
    call.announced = locations;
    const event = {
      ...{ type: "tool_call" as const, id: call.id, name },
      ...(shown === undefined ? {} : { input: shown }),
      ...(locations.length === 0 ? {} : { locations }),
    };
    this.#options.emit(event, weightOf(call));
  }

  #finish(call: Call, failed: boolean): void {
    const output = outputOf(call);
    const { changes, locations } = call;
    this.#options.emit(
      {
        type: "tool_result",
        id: call.id,
        ...(output === undefined ? {} : { output }),
        ...(changes.length === 0 || failed ? {} : { changes }),
        ...(isDeepStrictEqual(locations, call.announced) ? {} : { locations }),
        ...(failed ? { isError: true } : {}),
      },
      weightOf(call),
    );
    this.#settle(call);
  }

  /** Forgets a call and its content: a long turn has many calls, and each may be large. */
  #settle(call: Call): void {
    this.#held.delete(call);
    if (!this.#open.delete(call.id)) return;
    this.#weight -= weightOf(call);
    this.#settled.add(call.id);
    const [oldest] = this.#settled;
    if (this.#settled.size > maxSettled && oldest !== undefined) this.#settled.delete(oldest);
  }

  #identity(call: Call): ToolIdentity {
    const identity = this.#options.identify(viewOf(call));
    // The profile's interpretation takes precedence: some agents wrap the input.
    if (identity.input !== undefined || !hasContent(call.input)) return identity;
    return { ...identity, input: call.input };
  }
}
