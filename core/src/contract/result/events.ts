/** The events of a run: the schema of each type, and its traits for all code that passes, keeps or shows events. */

import { z } from "zod";
import { renderHintSchema } from "../request/tools/tool.js";
import { errorDetailSchema } from "./failure.js";

const event = <Type extends string, Shape extends z.core.$ZodLooseShape>(type: Type, shape: Shape) =>
  z.strictObject({ type: z.literal(type), ...shape });

/** The usage of this turn. A figure that the agent doesn't report per turn is absent. */
export const usageSchema = z.strictObject({
  /** Tokens that were sent to the model, including cached ones. */
  input: z.number().optional(),
  /** The part of `input` that came from the provider's cache. */
  cached: z.number().optional(),
  /** The part of `input` that was written to the provider's cache. */
  cacheWritten: z.number().optional(),
  /** Tokens that the model generated, including its reasoning. */
  output: z.number().optional(),
  /** The part of `output` that the model spent on reasoning. */
  reasoning: z.number().optional(),
  total: z.number().optional(),
  /** The price in US dollars. */
  cost: z.number().optional(),
});
export type Usage = z.infer<typeof usageSchema>;

/** A file that a call names, with its line if the agent says one (from 1). */
export const fileLocationSchema = z.strictObject({ path: z.string(), line: z.int().optional() });
export type FileLocation = z.infer<typeof fileLocationSchema>;

/** The change of a file, or of a part of it. `oldText` is absent for a new file. */
export const fileChangeSchema = z.strictObject({
  path: z.string(),
  oldText: z.string().optional(),
  newText: z.string().optional(),
  /** The number of characters of both texts if they are too long to be reported. Both are then absent. */
  omitted: z.int().positive().optional(),
});
export type FileChange = z.infer<typeof fileChangeSchema>;

/** The call that began the subagent that did this. Absent: the agent itself did it. */
const parentToolCallId = z.string().optional();

export const interactionKindSchema = z.enum(["user_approval", "user_input", "client_tool"]);
const interaction = { id: z.string(), kind: interactionKindSchema };

/** A question, and in a response its answer. Further keys describe a tool of a gateway or a budget. */
export const interactionPayloadSchema = z.looseObject({
  /** The interaction's id; in a response, the id of the call. */
  toolCallId: z.string().optional(),
  toolName: z.string().optional(),
  /** The MCP server that has the tool. */
  server: z.string().optional(),
  /** The call's arguments; for a `user_input`, its message with a form or a URL. */
  input: z.unknown().optional(),
  /** The changes of files that the call would make, and the files that it names, as far as the agent says. */
  changes: z.array(fileChangeSchema).optional(),
  locations: z.array(fileLocationSchema).optional(),
  render: renderHintSchema.optional(),
  /** The time until which the run waits for a live answer (ISO 8601). Absent if the run pauses immediately. */
  expiresAt: z.string().optional(),
  /** The same call was allowed before, and may have run: its run ended before the outcome was known. */
  earlierOutcome: z.literal("unknown").optional(),
  parentToolCallId,
  /** Whether the call was approved, in a response to a `user_approval`. */
  approved: z.boolean().optional(),
  /** `accept` or `decline`, in a response to a `user_input`. */
  action: z.string().optional(),
});
export type InteractionPayload = z.infer<typeof interactionPayloadSchema>;

/** Who denied a call: the operator's ceiling or a tool policy, the request's permissions, or the user. */
export const denierSchema = z.enum(["policy", "rule", "user"]);
export type Denier = z.infer<typeof denierSchema>;

/**
 * How a call ended that has no outcome of its own. `deferred`: it wasn't made. `interrupted`: the user stopped the turn, and it
 * may have run. `unknown`: it may have run. Absent: it was made, and the output is its outcome.
 */
const settlementSchema = z.enum(["denied", "deferred", "interrupted", "unknown"]);

/**
 * What happens during a run. A text or thought block is either one coalesced event (`message`, `thought`)
 * or a `_start`, `_delta`…, `_end` family, never both. What a subagent does is nested under the call that began it: its
 * texts and calls have `parentToolCallId`, and what follows under their ids is the subagent's too.
 */
export const agentEventSchema = z.discriminatedUnion("type", [
  /** One of the first events of a run in a session: the id that `POST /cancel` takes. */
  event("turn", { turnId: z.string() }),
  event("message", { text: z.string(), parentToolCallId }),
  event("thought", { text: z.string(), parentToolCallId }),
  event("message_start", { id: z.string(), parentToolCallId }),
  event("message_delta", { id: z.string(), delta: z.string() }),
  event("message_end", { id: z.string() }),
  event("thought_start", { id: z.string(), parentToolCallId }),
  event("thought_delta", { id: z.string(), delta: z.string() }),
  event("thought_end", { id: z.string() }),
  event("tool_call", {
    id: z.string(),
    name: z.string().optional(),
    input: z.unknown().optional(),
    /** The question (`ask_…`) whose answer lets this call be made: a call of an earlier turn goes on under this id. */
    resumes: z.string().optional(),
    locations: z.array(fileLocationSchema).optional(),
    render: renderHintSchema.optional(),
    parentToolCallId,
  }),
  /** A piece of what a command prints while it runs. The result has the whole output. */
  event("tool_output", { id: z.string(), delta: z.string() }),
  event("tool_result", {
    id: z.string(),
    output: z.unknown().optional(),
    data: z.unknown().optional(),
    changes: z.array(fileChangeSchema).optional(),
    /** Absent if `tool_call` had the same value. */
    locations: z.array(fileLocationSchema).optional(),
    isError: z.boolean().optional(),
    denied: z.boolean().optional(),
    deniedBy: denierSchema.optional(),
    settled: settlementSchema.optional(),
    /** The id under which a deferred call continues once its user has answered (`ask_…`). */
    movedTo: z.string().optional(),
    render: renderHintSchema.optional(),
  }),
  event("interaction_request", { ...interaction, payload: interactionPayloadSchema.optional() }),
  event("interaction_response", { ...interaction, payload: interactionPayloadSchema.optional() }),
  /** A question is over without an answer: the agent withdrew it, or that of a paused run waited too long, after the run has ended. */
  event("interaction_expired", interaction),
  event("boundary_decision", {
    target: z.string(),
    allowed: z.boolean(),
    reason: z.string(),
    /** Why the allowed connection failed: the network, the server or the deployer's proxy. It may follow the event of its opening. */
    failure: z.string().max(300).optional(),
    /** The number of consecutive times that this decision was made. */
    count: z.int().positive(),
  }),
  event("commands", {
    commands: z.array(
      z.strictObject({
        name: z.string(),
        description: z.string().optional(),
        /** Describes the command's argument. */
        hint: z.string().optional(),
      }),
    ),
  }),
  event("mode", { mode: z.string() }),
  event("configuration", {
    options: z.array(
      z.strictObject({
        id: z.string(),
        name: z.string().optional(),
        /** ACP's: `model`, `mode`, `thought_level`, … */
        category: z.string().optional(),
        value: z.union([z.string(), z.boolean()]),
      }),
    ),
  }),
  event("data", {
    name: z.string(),
    data: z.unknown(),
    transient: z.boolean().optional(),
    parentToolCallId,
  }),
  event("file", {
    url: z.string(),
    /** The media type by the name of an output of the run, such as `image/png`. */
    mediaType: z.string(),
    /** The path of an output of the run in the workspace, its bytes and its digest. */
    path: z.string().optional(),
    size: z.int().nonnegative().optional(),
    sha256: z.string().optional(),
    parentToolCallId,
  }),
  event("usage", usageSchema.shape),
  /** An MCP server of the request that could not be reached or used. */
  event("mcp_server_failed", {
    serverName: z.string(),
    reasonCode: z.enum([
      "handshake_unreachable",
      "handshake_http_error",
      "handshake_rejected",
      "handshake_invalid_response",
    ]),
    /** The HTTP status if there was a response. */
    status: z.int().optional(),
    message: z.string(),
  }),
  event("error", { message: z.string(), code: z.string().optional(), detail: errorDetailSchema.optional() }),
  event("done", { stopReason: z.string().optional(), traceId: z.string().optional() }),
]);
export type AgentEvent = z.infer<typeof agentEventSchema>;
export type AgentEventOf<Type extends AgentEvent["type"]> = Extract<AgentEvent, { type: Type }>;

export const eventRecordSchema = z.strictObject({
  kind: z.literal("event"),
  /**
   * When the event happened (ISO 8601), by the clock of the replica that had the run. It is the same for each reader, at any
   * time. Absent: the event was stored by a version that didn't keep it.
   */
  at: z.iso.datetime().optional(),
  event: agentEventSchema,
});
/** An event, with the time at which it happened. */
export type EventRecord = z.infer<typeof eventRecordSchema>;

/** Makes an event's stream record. @param atMs milliseconds since the epoch */
export function eventRecord(event: AgentEvent, atMs: number): EventRecord {
  return { kind: "event", at: isoTime(atMs), event };
}

let latest = { ms: Number.NaN, text: "" };

/** Formats a time. The latest text is reused, since dozens of events happen in one millisecond. */
function isoTime(ms: number): string {
  if (ms !== latest.ms) latest = { ms, text: new Date(ms).toISOString() };
  return latest.text;
}

/** The traits of a type of event, for all code that passes, redacts, keeps, counts or shows events. */
interface EventTraits {
  /** Describes the type in the contract's README, whose table is generated from it. */
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
  /** Whether a caller needs the event to continue, so that every result has it. Default: false. */
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
      "Anything else, by its name: `run` (what was chosen), `plan` (the agent's plan, whole), `setup` (a command of `environment.setup` that started, printed or ended), `stage` (what the run is busy with, once its preparation or its end takes longer than a second: `stage`, `at`, and of a git source that is fetched `source`, its index, and `percent`), `notice`, `truncated`, `preview` (a port of the request's `ports` has a URL: `port`, `name`, `url`, `expiresAt`; everyone who has the URL can use it), `pull_request` (`url`, `number`, `branch`, `opened`), and `acp.…` for updates that Ambit doesn't know.",
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

/** The text of an event, or its address, which can be long. A tool's values can be too, and aren't included. Pure. */
export function textOf(event: AgentEvent): string {
  if ("text" in event) return event.text;
  if ("delta" in event) return event.delta;
  return "url" in event ? event.url : "";
}

/** Whether an event shows that the agent has done something. Thoughts, usage and transient data don't. Pure. */
export function isOutput(event: AgentEvent): boolean {
  const { output } = traitsOf(event);
  if (output === "unless_blank") return textOf(event).trim() !== "";
  if (output === "unless_transient") return !("transient" in event && event.transient === true);
  return output === "always";
}
