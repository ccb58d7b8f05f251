import type { AgentEvent, AgentEventOf } from "./events.js";

/** What an event is, for all that pass, redact, keep, count or show events. */
interface EventTraits {
  /** What it says: the table in the contract's README is made of it. */
  readonly description: string;
  readonly about:
    | "turn"
    | "text"
    | "call"
    | "question"
    | "decision"
    | "setting"
    | "content"
    | "usage"
    | "failure";
  /** The block that it is a part of: a text whose pieces have the same id. A call's result ends the output of its command. */
  readonly block?: "message" | "thought" | "output";
  readonly part?: "start" | "delta" | "end";
  /** Whether the agent has done something by it, so that its turn isn't empty. Default: it hasn't. */
  readonly output?: "always" | "unless_blank" | "unless_transient";
  /** The field besides `type` whose values are enumerated. None of them is a secret, even if one has the same text. */
  readonly enumerated?: string;
  /** Whether a caller can't continue without it, so that every result has it. Default: false. */
  readonly isRequired?: boolean;
}

/** The one list of what each type of event is. A new type is decided on here, and in the switches of those who show it. */
export const eventTraits = {
  turn: { about: "turn", description: "The turn begins in a session. `POST /cancel` takes its id." },
  message: { about: "text", output: "unless_blank", description: "A text of the agent, whole." },
  thought: { about: "text", description: "A thought of the agent, whole." },
  message_start: {
    about: "text",
    block: "message",
    part: "start",
    description: "A text begins that comes in pieces.",
  },
  message_delta: {
    about: "text",
    block: "message",
    part: "delta",
    output: "unless_blank",
    description: "A piece of the text with this id.",
  },
  message_end: {
    about: "text",
    block: "message",
    part: "end",
    description: "The text with this id is complete.",
  },
  thought_start: {
    about: "text",
    block: "thought",
    part: "start",
    description: "A thought begins that comes in pieces.",
  },
  thought_delta: {
    about: "text",
    block: "thought",
    part: "delta",
    description: "A piece of the thought with this id.",
  },
  thought_end: {
    about: "text",
    block: "thought",
    part: "end",
    description: "The thought with this id is complete.",
  },
  tool_call: { about: "call", output: "always", description: "The agent calls a tool." },
  tool_output: {
    about: "call",
    block: "output",
    part: "delta",
    description: "A piece of what a command prints while it runs; only in a stream.",
  },
  tool_result: {
    about: "call",
    block: "output",
    part: "end",
    output: "always",
    description: "The call with this id has ended. `changes`: the files that it changed.",
  },
  interaction_request: {
    about: "question",
    output: "always",
    enumerated: "kind",
    isRequired: true,
    description: "The run asks its user. An answer takes this id.",
  },
  interaction_response: {
    about: "question",
    output: "always",
    enumerated: "kind",
    description: "The question with this id was answered.",
  },
  interaction_expired: {
    about: "question",
    enumerated: "kind",
    description:
      "A question is over without an answer. While the run goes on, the agent has withdrawn it; after the run has paused, it waited too long.",
  },
  boundary_decision: {
    about: "decision",
    description:
      "The boundary allowed or refused a connection, `count` times in a row. With `failure`, an allowed one failed.",
  },
  commands: {
    about: "setting",
    description: "The agent's slash commands, whenever the list changes: a prompt may begin with `/name`.",
  },
  mode: { about: "setting", description: "The agent changed its mode." },
  configuration: {
    about: "setting",
    description: "The agent changed its configuration: the values that hold from now on.",
  },
  data: {
    about: "content",
    output: "unless_transient",
    description:
      "Anything else, by its name: `run` (what was chosen), `plan` (the agent's plan, whole), `setup` (a command of `environment.setup` that started, printed or ended), `notice`, `truncated`, `preview` (a port of the request's `ports` has a URL: `port`, `name`, `url`, `expiresAt`; everyone who has the URL can use it), `pull_request` (`url`, `number`, `branch`, `opened`), and `acp.…` for updates that Ambit doesn't know.",
  },
  file: {
    about: "content",
    output: "always",
    description: "A file of the agent, or one of the run's `outputs`: then with its path, bytes and digest.",
  },
  usage: { about: "usage", description: "The usage of this turn." },
  mcp_server_failed: {
    about: "failure",
    enumerated: "reasonCode",
    description: "An MCP server of the request could not be reached or used.",
  },
  error: { about: "failure", description: "What went wrong. The result says whether the run failed." },
  done: { about: "turn", isRequired: true, description: "The turn is over. The result follows." },
} as const satisfies Readonly<Record<AgentEvent["type"], EventTraits>>;

type Traits = typeof eventTraits;
type TypesWith<Trait> = { [Type in keyof Traits]: Traits[Type] extends Trait ? Type : never }[keyof Traits];

/** The events with these traits, such as `EventWith<{ part: "delta" }>`. */
export type EventWith<Trait extends Partial<EventTraits>> = AgentEventOf<TypesWith<Trait>>;

export function traitsOf(event: AgentEvent): EventTraits {
  return eventTraits[event.type];
}

/** Pure. */
export function isAbout<Subject extends EventTraits["about"]>(
  event: AgentEvent,
  subject: Subject,
): event is EventWith<{ about: Subject }> {
  return eventTraits[event.type].about === subject;
}

/** Whether an event is the start, a piece or the end of a block. Pure. */
export function isPart<Part extends NonNullable<EventTraits["part"]>>(
  event: AgentEvent,
  part: Part,
): event is EventWith<{ part: Part }> {
  return traitsOf(event).part === part;
}

/** The text of an event, or its address: what it may be long by, besides a tool's values. Pure. */
export function textOf(event: AgentEvent): string {
  if ("text" in event) return event.text;
  if ("delta" in event) return event.delta;
  return "url" in event ? event.url : "";
}

/** Whether the agent has done something by an event. Thoughts, usage and transient data don't count. Pure. */
export function isOutput(event: AgentEvent): boolean {
  const { output } = traitsOf(event);
  if (output === "unless_blank") return textOf(event).trim() !== "";
  if (output === "unless_transient") return !("transient" in event && event.transient === true);
  return output === "always";
}
