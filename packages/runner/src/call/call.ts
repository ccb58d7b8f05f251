/**
 * The calls of a run's agent: what a call is, the states that it passes, all calls without a result, and the texts of those that
 * end without one.
 */

import { createHash, randomUUID } from "node:crypto";
import { HarnessFailed } from "@ambit/core";
import {
  type AgentEventOf,
  type Denier,
  isJsonObject,
  type McpServer,
  ownServerName,
  parseBoundedJson,
  type ToolSpec,
} from "@ambit/core/contract";
import type { PermissionQuestion, PublishedOutcome, ToolClass } from "@ambit/core/plugin";
import { canonicalJson, pathBeyondDepth, sizeOf } from "../json-values.js";
import type { RunLimits } from "../limits.js";
import { looksIssued } from "../parse/messages.js";

/**
 * A tool of the request, of the agent, or of the MCP server with that name. `runner`: not a tool, but a question of the
 * runner.
 */
type CallOrigin = "request" | "agent" | "runner" | { readonly server: string };

/** What a call is about: everything that a permission depends on and that its user sees. */
export interface CallSubject {
  readonly name: string;
  readonly origin: CallOrigin;
  /** Undefined when the agent doesn't report it. */
  readonly input: unknown;
  /** The tool of the request, if it is one; else the agent's own, or its server's. */
  readonly tool?: ToolSpec | undefined;
  readonly server?: McpServer | undefined;
  /** What the agent reports about its own tool. For any other tool, only the request counts. */
  readonly readOnly?: boolean | undefined;
  /** What a tool of the agent's own does. */
  readonly toolClass?: ToolClass | undefined;
  /** The files that it would change and those that it names, as its agent says. */
  readonly files?: Pick<PermissionQuestion, "changes" | "locations"> | undefined;
}

/** One tool call of a run's agent, from its first report, question or execution until its result is sent. */
export interface Call extends CallSubject {
  /** The agent's id where it sends one, else ours. */
  readonly id: string;
  /** The id that the caller reads: the agent's, or the runner's for a call that its user is asked about. */
  readonly publicId: string;
  /** Equal for calls with the same tool and arguments. It is kept instead of the arguments, which may be large. */
  readonly key: string;
  /** Whether the caller is owed a result: the agent reported the call, or the runner announced it. */
  readonly isReported: boolean;
  /** The agent's id of the call that began the subagent which makes this one. Default: the agent itself makes it. */
  readonly parentId?: string | undefined;
  readonly announcement: Announcement;
  readonly state: CallState;
}

/**
 * What the caller has seen of a call. `none`: nothing yet · `held`: the agent's report waits for a decision ·
 * `released`: the agent's report is passed on immediately · `announced`: `tool_call` was sent · `awaited`: the runner
 * sent it, and the agent's own report is still to come.
 */
type Announcement = "none" | "held" | "released" | "announced" | "awaited";

/** `claimed`: the runner is deciding on this call, so no other is matched with it. */
type Pending = { readonly name: "pending"; readonly claimed: boolean };
/** The agent asked before it called, and may call. `claimed`: the call itself has reached the runner. */
type Allowed = { readonly name: "allowed"; readonly claimed: boolean };
type Executing = { readonly name: "executing" };

/** A step in the life of a call. */
export type CallState =
  | Pending
  | Allowed
  | Executing
  /** The user was asked about it; `resumes` is the state in which it continues after the answer. */
  | { readonly name: "asked"; readonly resumes: Pending | Allowed | Executing }
  /** The user didn't answer in time: the turn pauses. */
  | { readonly name: "parked" }
  /** `outcome`: what the agent was sent, where the call reached the runner. */
  | { readonly name: "denied"; readonly by: Denier; readonly outcome?: PublishedOutcome | undefined }
  | {
      readonly name: "finished";
      readonly outcome: PublishedOutcome;
      /** Data for the user interface, not for the model. */
      readonly data?: unknown;
    };

export type CallStep =
  /** The runner begins to decide on it: the agent asks, or calls. */
  | { readonly step: "claim" }
  /** The decision was abandoned. */
  | { readonly step: "release" }
  | { readonly step: "ask" | "answer" | "park" | "allow" | "execute" }
  | { readonly step: "deny"; readonly by: Denier; readonly outcome?: PublishedOutcome | undefined }
  | { readonly step: "finish"; readonly outcome: PublishedOutcome; readonly data?: unknown }
  /** There is no room to remember its outcome. */
  | { readonly step: "forget" };

/** The next state; undefined if the step isn't possible in this state. Pure. */
export function advanceCall(state: CallState, step: CallStep): CallState | undefined {
  switch (state.name) {
    case "pending":
    case "allowed":
      return decide(state, step);
    case "asked":
      if (step.step === "answer") return state.resumes;
      return step.step === "park" ? { name: "parked" } : undefined;
    case "executing":
      if (step.step === "ask") return { name: "asked", resumes: state };
      if (step.step !== "finish") return undefined;
      return { name: "finished", outcome: step.outcome, data: step.data };
    case "denied":
    case "finished":
      // An agent may reuse an id.
      return step.step === "claim" || step.step === "forget" ? { name: "pending", claimed: true } : undefined;
    case "parked":
      return undefined;
  }
}

function decide(state: Pending | Allowed, step: CallStep): CallState | undefined {
  switch (step.step) {
    case "claim":
      return state.claimed ? undefined : { ...state, claimed: true };
    case "release":
      return { ...state, claimed: false };
    case "ask":
      return { name: "asked", resumes: state };
    case "allow":
      return { name: "allowed", claimed: false };
    case "deny":
      return { name: "denied", by: step.by, outcome: step.outcome };
    case "execute":
      return { name: "executing" };
    case "forget":
      return state.name === "allowed" ? { name: "pending", claimed: state.claimed } : undefined;
    default:
      return undefined;
  }
}

/** Whether its result can only come from the user. Pure. */
export function waitsForUser({ name }: CallState): boolean {
  return name === "asked" || name === "parked";
}

/** What an agent asks about before it calls. Pure. */
export function subjectOf(
  question: PermissionQuestion,
  tools: ReadonlyMap<string, ToolSpec>,
  servers: ReadonlyMap<string, McpServer>,
): CallSubject {
  const { toolName: name, input, readOnly, server: serverName, toolClass, changes, locations } = question;
  const server = serverName === undefined ? undefined : servers.get(serverName);
  // A tool of the agent may have the name of one of the request, but is a different tool.
  const tool = serverName === ownServerName ? tools.get(name) : undefined;
  const origin = tool !== undefined ? "request" : serverName === undefined ? "agent" : { server: serverName };
  return { name, origin, input, tool, server, readOnly, toolClass, files: { changes, locations } };
}

/** The same for equal arguments. A digest, since arguments may be long and only their equality counts. */
function digestOf(input: unknown): string {
  return createHash("sha256")
    .update(canonicalJson(comparable(input)))
    .digest("base64url");
}

/** Characters of a text that is read as JSON. A longer one is compared as it is. */
const maxQuoted = 65_536;

/**
 * A call's arguments in the form in which two calls are compared. Agents that repeat a call may send a list or an object
 * as its JSON text, or the text as what it means: both are the same arguments. Pure.
 */
export function comparable(input: unknown): unknown {
  const meant = unquoted(input) ?? {};
  if (!isJsonObject(meant)) return meant;
  return Object.fromEntries(Object.entries(meant).map(([name, value]) => [name, unquoted(value)]));
}

function unquoted(value: unknown): unknown {
  if (typeof value !== "string" || value.length > maxQuoted || !/^\s*[{[]/.test(value)) return value;
  try {
    const meant = parseBoundedJson(value);
    // The comparison recurses.
    return pathBeyondDepth(meant) === undefined ? meant : value;
  } catch {
    return value;
  }
}

/** Calls with an outcome that are kept until the agent reports their results; beyond that, the oldest are dropped. */
const maxDecided = 256;
/** Total length of their outcomes. */
const maxOutcomeCharacters = 4_194_304;
/** Total length of the ids and names of reported calls. */
const maxNameCharacters = 1_048_576;

/**
 * The calls of a run's agent that have no result yet. What the agent reports of a call and what the runner does with it
 * are matched by the agent's id where it sends one, else by tool and arguments.
 */
export class Calls {
  /** The calls by their `Call.id`. */
  readonly #calls = new Map<string, Call>();
  /** The agent's ids of calls that the runner announced under another one first. */
  readonly #aliases = new Map<string, string>();
  #changed: PromiseWithResolvers<void> | undefined;
  #reported = 0;
  #named = 0;
  #decided = 0;
  #outcomes = 0;

  constructor(private readonly limits: Pick<RunLimits, "reportedCalls">) {}

  /** The call with that id, either the agent's or ours. */
  find(id: string): Call | undefined {
    const short = shortId(id);
    return this.#calls.get(this.#aliases.get(short) ?? short);
  }

  /**
   * The agent reports a call, and again when it has more of it.
   * @param parentId of the call that began the subagent which makes it. Default: the agent makes it. @throws HarnessFailed for one too many
   */
  report(agentId: string, name: string, input: unknown, parentId?: string): Call {
    const subject: CallSubject = { name, input, origin: "agent" };
    const key = keyOf(subject);
    const reported = this.find(agentId);
    const call = this.#mayAdopt(reported) ? (this.#adopt(agentId, key, reported) ?? reported) : reported;
    if (call === undefined)
      return this.#set({ ...newCall(shortId(agentId), agentId, subject), isReported: true, parentId });
    // Once the runner has the call, the arguments of the call itself count.
    const isOpen = call.state.name === "pending" && !call.state.claimed;
    return this.#set({ ...call, name, isReported: true, key: isOpen ? key : call.key, parentId });
  }

  /**
   * The runner begins to decide on a call.
   * @param agentId where the agent sent one. Without it, a call that the agent asked about or reported is found by its
   * tool and arguments, each one once. An id that a call in progress already has means another call.
   */
  claim(agentId: string | undefined, subject: CallSubject): Call {
    const key = keyOf(subject);
    const named = agentId === undefined ? undefined : this.find(agentId);
    const match = named ?? this.#allowed(key) ?? (agentId === undefined ? this.#pending(key) : undefined);
    const state = match === undefined ? undefined : advanceCall(match.state, { step: "claim" });
    if (match !== undefined && state !== undefined) return this.#set({ ...match, ...subject, key, state });
    return this.begin(agentId === undefined || match !== undefined ? randomUUID() : agentId, subject);
  }

  /** A call that the runner decides on, and that the agent hasn't reported. */
  begin(agentId: string, subject: CallSubject): Call {
    const id = shortId(agentId);
    return this.#set({ ...newCall(id, id, subject), state: { name: "pending", claimed: true } });
  }

  /** Does nothing if the step isn't possible, or the agent has already reported the result. */
  step(id: string, step: CallStep): void {
    const call = this.#calls.get(id);
    const state = call === undefined ? undefined : advanceCall(call.state, step);
    if (call === undefined || state === undefined) return;
    // Forgets a call that the agent neither reported nor made.
    if (step.step === "release" && !call.isReported) this.#delete(call);
    else this.#set({ ...call, state });
    this.#forgetOldest();
  }

  /** Updates what the caller has seen of it, and perhaps its public id. */
  announce(call: Call, announcement: Announcement, publicId = call.publicId): Call {
    const isReported = call.isReported || announcement === "announced" || announcement === "awaited";
    return this.#set({ ...call, announcement, publicId, isReported });
  }

  /** A call that the agent reported, and that has no result yet. */
  get firstReported(): Call | undefined {
    return this.#first(({ isReported }) => isReported);
  }

  /** What the runner knows about a reported call; undefined for any other. */
  stateOf(agentId: string): CallState | undefined {
    const call = this.find(agentId);
    return call?.isReported === true ? (this.#unreported(call) ?? call).state : undefined;
  }

  /** The agent reports a result, which ends the call. Returns its state; undefined for a call that was never reported. */
  settle(agentId: string): Call | undefined {
    const call = this.find(agentId);
    if (call?.isReported !== true) return undefined;
    const other = this.#unreported(call);
    this.#delete(call);
    if (other !== undefined) this.#delete(other);
    return { ...call, state: (other ?? call).state };
  }

  /** Whether the agent's calls run, or are about to reach the runner. Those that wait for the user do neither. */
  get progress(): { readonly isExecuting: boolean; readonly isComing: boolean } {
    let isComing = false;
    for (const { state, origin, isReported } of this.#calls.values()) {
      if (state.name === "executing" || (state.name === "allowed" && origin === "agent"))
        return { isExecuting: true, isComing };
      isComing ||= state.name === "allowed" || (state.name === "pending" && (state.claimed || isReported));
    }
    return { isExecuting: false, isComing };
  }

  /** Resolves with the next change of any call. */
  changed(): Promise<void> {
    this.#changed ??= Promise.withResolvers<void>();
    return this.#changed.promise;
  }

  /** Every reported call, at the end of the turn. */
  settleAll(): readonly Call[] {
    return [...this.#calls.keys()].flatMap((id) => this.settle(id) ?? []);
  }

  /** Not yet known, or reported earlier without the arguments by which its execution could be recognised. */
  #mayAdopt(reported: Call | undefined): boolean {
    if (reported === undefined) return true;
    const { announcement, state } = reported;
    return (announcement === "none" || announcement === "held") && state.name === "pending" && !state.claimed;
  }

  /** The call that reached the runner before the agent reported it: its connection overtook the agent's output. */
  #adopt(agentId: string, key: string, before: Call | undefined): Call | undefined {
    const overtook = (one: Call) => !one.isReported || one.announcement === "awaited";
    const call = this.#first((one) => one.key === key && overtook(one));
    if (call === undefined) return undefined;
    if (before !== undefined) this.#delete(before);
    this.#aliases.set(shortId(agentId), call.id);
    return call.announcement === "awaited" ? call : { ...call, publicId: publicIdOf(agentId) };
  }

  #allowed(key: string): Call | undefined {
    return this.#first(
      ({ key: other, state }) => other === key && state.name === "allowed" && !state.claimed,
    );
  }

  #pending(key: string): Call | undefined {
    return this.#first(
      ({ key: other, state }) => other === key && state.name === "pending" && !state.claimed,
    );
  }

  /** An equal call that reached the runner under an id that the agent didn't report. */
  #unreported({ key, state }: Call): Call | undefined {
    if (state.name !== "pending") return undefined;
    return this.#first((one) => !one.isReported && one.key === key && one.state.name !== "pending");
  }

  #first(matches: (call: Call) => boolean): Call | undefined {
    for (const call of this.#calls.values()) if (matches(call)) return call;
    return undefined;
  }

  #set(call: Call): Call {
    const before = this.#calls.get(call.id);
    if (call.isReported) this.#requireRoom(call, before);
    if (before !== undefined) this.#count(before, -1);
    this.#count(call, 1);
    this.#calls.set(call.id, isInProgress(call) ? call : { ...call, input: undefined, files: undefined });
    return call;
  }

  /** @throws HarnessFailed */
  #requireRoom(call: Call, before: Call | undefined): void {
    const { reportedCalls } = this.limits;
    const isNew = before?.isReported !== true;
    const more = namedBy(call) - (isNew ? 0 : namedBy(before));
    if ((isNew && this.#reported >= reportedCalls) || (more > 0 && this.#named + more > maxNameCharacters)) {
      throw new HarnessFailed(
        `The agent reported more tool calls without their results than a run may have (${reportedCalls}).`,
      );
    }
  }

  #delete(call: Call): void {
    this.#count(call, -1);
    this.#calls.delete(call.id);
    for (const [alias, id] of this.#aliases) if (id === call.id) this.#aliases.delete(alias);
  }

  #count(call: Call, sign: 1 | -1): void {
    this.#changed?.resolve();
    this.#changed = undefined;
    if (call.isReported) {
      this.#reported += sign;
      this.#named += sign * namedBy(call);
    }
    const { state } = call;
    if (state.name === "pending") return;
    this.#decided += sign;
    this.#outcomes += sign * sizeOfOutcome(state);
  }

  #forgetOldest(): void {
    while (this.#decided > maxDecided || this.#outcomes > maxOutcomeCharacters) {
      const oldest = this.#first(({ state }) => advanceCall(state, { step: "forget" }) !== undefined);
      const state = oldest === undefined ? undefined : advanceCall(oldest.state, { step: "forget" });
      if (oldest === undefined || state === undefined) return;
      if (oldest.isReported) this.#set({ ...oldest, state });
      else this.#delete(oldest);
    }
  }
}

function newCall(id: string, publicId: string, subject: CallSubject): Call {
  return {
    ...subject,
    id,
    publicId: publicIdOf(publicId),
    key: keyOf(subject),
    isReported: false,
    announcement: "none",
    state: { name: "pending", claimed: false },
  };
}

/** Whether the runner has the call: only then it needs what may be large of it. A call may be known for longer. */
function isInProgress({ state }: Call): boolean {
  const isClaimed = (state.name === "pending" || state.name === "allowed") && state.claimed;
  return isClaimed || state.name === "executing" || waitsForUser(state);
}

/** The agent may choose its ids, but none that looks like one of ours. */
export function publicIdOf(agentId: string): string {
  return looksIssued(agentId) ? `call-${randomUUID()}` : agentId;
}

/** The same key for equal calls. */
function keyOf({ name, input }: CallSubject): string {
  return `${digestOf(input)} ${name}`;
}

/** An id in the form in which it is compared: agents may send long ones. */
function shortId(id: string): string {
  return id.length <= 128 ? id : createHash("sha256").update(id).digest("base64url");
}

function namedBy({ id, publicId, name, parentId = "" }: Call): number {
  return id.length + publicId.length + name.length + parentId.length;
}

function sizeOfOutcome(state: CallState): number {
  if (state.name !== "finished" && state.name !== "denied") return 0;
  const data = state.name === "finished" && state.data !== undefined ? sizeOf(state.data) : 0;
  return (state.outcome?.output.length ?? 0) + data;
}

/**
 * The result of a call that has none at the end of the turn. The words before the colon are part of the wire: user
 * interfaces show them as "skipped" or "unknown", and text that begins with one isn't an answer.
 */
export const unsettledTexts = {
  deferred:
    "DEFERRED_NOT_EXECUTED: the turn paused for the user before this call ran. Call it again if it is still needed.",
  moved: "DEFERRED_NOT_EXECUTED: the user is asked about this call first. It continues under another id.",
  unknown:
    "APPROVED_EXECUTION_RESULT_UNKNOWN: this call was allowed and may have run, but the turn paused before its result was seen. Don't take it as failed, and don't repeat what has side effects.",
  interrupted:
    "INTERRUPTED_BY_USER: the user stopped the turn before this call had a result; it may have run. Don't repeat it unless the user asks.",
} as const;

const prefixes = Object.values(unsettledTexts).map((text) => text.slice(0, text.indexOf(":")));

/** Whether an output only states that there was none. */
export function isUnsettled(output: unknown): boolean {
  return typeof output === "string" && prefixes.some((prefix) => output.startsWith(prefix));
}

export function unsettled(
  id: string,
  why: Exclude<keyof typeof unsettledTexts, "moved">,
): AgentEventOf<"tool_result"> {
  return { type: "tool_result", id, output: unsettledTexts[why], isError: true, settled: why };
}

/** The result of a call that continues under the id of the question about it. */
export function moved(id: string, movedTo: string): AgentEventOf<"tool_result"> {
  const output = unsettledTexts.moved;
  return { type: "tool_result", id, output, isError: true, settled: "deferred", movedTo };
}
