import { createHash } from "node:crypto";
import {
  type Denier,
  isJsonObject,
  type McpServer,
  ownServerName,
  parseBoundedJson,
  type ToolSpec,
} from "@ambit/core/contract";
import type { PermissionQuestion, PublishedOutcome, ToolClass } from "@ambit/core/plugin";
import { canonicalJson, pathBeyondDepth } from "../../json-values.js";

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
export type Announcement = "none" | "held" | "released" | "announced" | "awaited";

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
export function digestOf(input: unknown): string {
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
