import { z } from "zod";
import { renderHintSchema } from "../request/tools/tool.js";
import { errorDetailSchema } from "./failure.js";

const event = <Type extends string, Shape extends z.core.$ZodLooseShape>(type: Type, shape: Shape) =>
  z.strictObject({ type: z.literal(type), ...shape });

/** The usage of this turn. A figure that the agent doesn't report per turn is absent. */
export const usageSchema = z.strictObject({
  /** Tokens sent to the model, including cached ones. */
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
  /** US dollars. */
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
  /** Characters of both texts, where they are too long to be reported: then both are absent. */
  omitted: z.int().positive().optional(),
});
export type FileChange = z.infer<typeof fileChangeSchema>;

/** The call that began the subagent whose work this is. Absent: it is the agent's own. */
const parentToolCallId = z.string().optional();

export const interactionKindSchema = z.enum(["user_approval", "user_input", "client_tool"]);
const interaction = { id: z.string(), kind: interactionKindSchema };

/** What is asked, and in a response what was answered. Further keys describe a tool of a gateway or a budget. */
export const interactionPayloadSchema = z.looseObject({
  /** The same as the interaction's id. In a response: the id of the call. */
  toolCallId: z.string().optional(),
  toolName: z.string().optional(),
  /** The MCP server that has the tool. */
  server: z.string().optional(),
  /** The call's arguments; of a `user_input`, its message with a form or a URL. */
  input: z.unknown().optional(),
  /** The changes of files that the call would make, and the files that it names, as far as the agent says. */
  changes: z.array(fileChangeSchema).optional(),
  locations: z.array(fileLocationSchema).optional(),
  render: renderHintSchema.optional(),
  /** ISO 8601: how long the run waits for a live answer. Absent where it pauses immediately. */
  expiresAt: z.string().optional(),
  /** The same call was allowed before, and may have run: its run ended before the outcome was known. */
  earlierOutcome: z.literal("unknown").optional(),
  parentToolCallId,
  /** In a response to a `user_approval`. */
  approved: z.boolean().optional(),
  /** In a response to a `user_input`: `accept` or `decline`. */
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
    /** Absent where `tool_call` had the same. */
    locations: z.array(fileLocationSchema).optional(),
    isError: z.boolean().optional(),
    denied: z.boolean().optional(),
    deniedBy: denierSchema.optional(),
    settled: settlementSchema.optional(),
    /** Of a deferred call that its user is asked about: the id under which it continues (`ask_…`). */
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
        /** What its argument is. */
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
    /** Of an output of the run: what its name promises, such as `image/png`. */
    mediaType: z.string(),
    /** Of an output of the run: its path in the workspace, bytes and digest. */
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
    /** The HTTP status, where there was a response. */
    status: z.int().optional(),
    message: z.string(),
  }),
  event("error", { message: z.string(), code: z.string().optional(), detail: errorDetailSchema.optional() }),
  event("done", { stopReason: z.string().optional(), traceId: z.string().optional() }),
]);
export type AgentEvent = z.infer<typeof agentEventSchema>;
export type AgentEventOf<Type extends AgentEvent["type"]> = Extract<AgentEvent, { type: Type }>;
