import type { AgentEvent, AmbitError, Issue, RunResult } from "@ambit/client";
import type { CallToolResult } from "@modelcontextprotocol/server";
import { z } from "zod";
import { type FileContent, fileUri } from "./file-resources.js";
import { type Question, questionSchema } from "./questions.js";

/** Entries of a list that the text for the model names. The structured content has all. */
const maxListed = 50;

/** Characters of what the agent said in the text for the model. */
const maxOutput = 100_000;

/** What `run_agent` and `continue_run` return as structured content. */
export const outcomeSchema = z.object({
  runId: z.string().optional().meta({ description: "Absent where the run was refused before it had an id." }),
  sessionId: z.string().optional().meta({ description: "What keeps the conversation and the files." }),
  status: z.enum(["completed", "input_required", "cancelled", "refused", "failed"]).meta({
    description:
      "`input_required`: the run waits for answers to `questions` by `continue_run`. `refused`: nothing was started.",
  }),
  stopReason: z.string().optional().meta({ description: "Why the agent stopped, such as `end_turn`." }),
  output: z.string().optional().meta({ description: "What the agent said." }),
  questions: z.array(questionSchema).optional().meta({ description: "What the run asks its user." }),
  changes: z
    .array(z.object({ change: z.enum(["added", "modified", "deleted"]), path: z.string() }))
    .optional()
    .meta({ description: "Files that the run changed, where its request has `outputs.patch`." }),
  files: z
    .array(z.object({ path: z.string(), size: z.int(), url: z.string().optional() }))
    .optional()
    .meta({
      description:
        "Files that left the run's workspace. Each is a resource, which the result links to. The `url` opens it without a token, for a day at most; it is relative to the server unless its configuration has a `publicUrl`.",
    }),
  error: z
    .object({
      code: z.string(),
      message: z.string(),
      retryable: z.boolean().meta({ description: "Whether the same call may succeed later." }),
      gaps: z.array(z.record(z.string(), z.unknown())).meta({
        description: "What can't be guaranteed: its actor, capability, reason and fix.",
      }),
      issues: z.array(z.object({ path: z.string(), message: z.string() })).meta({
        description: "What is wrong with the request, by its path.",
      }),
    })
    .optional(),
  warnings: z
    .array(z.object({ path: z.string().optional(), message: z.string() }))
    .optional()
    .meta({ description: "What was accepted, and has no effect or another one than it seems." }),
  usage: z.record(z.string(), z.unknown()).optional().meta({ description: "Tokens and cost of the turn." }),
  receipt: z.record(z.string(), z.unknown()).optional().meta({
    description: "What was guaranteed, by which actor, with the evidence.",
  }),
});
export type Outcome = z.input<typeof outcomeSchema>;

/**
 * A run's result.
 *
 * @param questions that are open, where the run has paused
 * @param fileUrls where its files open without a header, by their paths
 */
export function outcomeOf(
  result: RunResult,
  questions: readonly Question[],
  fileUrls: ReadonlyMap<string, string>,
): Outcome {
  const { runId, output, stopReason, usage, warnings, receipt } = result;
  const { sessionId = receipt?.session.id } = result;
  const outputs = receipt?.outputs;
  return {
    runId,
    ...(sessionId === undefined ? {} : { sessionId }),
    status: statusOf(stopReason),
    ...(stopReason === undefined ? {} : { stopReason }),
    ...(output === undefined ? {} : { output }),
    ...(stopReason === "paused" ? { questions: [...questions] } : {}),
    ...(outputs?.patch === undefined
      ? {}
      : { changes: outputs.patch.changes.map(({ change, path }) => ({ change, path })) }),
    ...(outputs === undefined || outputs.files.length === 0
      ? {}
      : { files: outputs.files.map((file) => fileOf(file, fileUrls.get(file.path))) }),
    ...(warnings === undefined ? {} : { warnings }),
    ...(usage === undefined ? {} : { usage }),
    ...(receipt === undefined ? {} : { receipt }),
  };
}

function fileOf({ path, size }: { readonly path: string; readonly size: number }, url: string | undefined) {
  return { path, size, ...(url === undefined ? {} : { url }) };
}

function statusOf(stopReason: string | undefined): Outcome["status"] {
  if (stopReason === "paused") return "input_required";
  return stopReason === "cancelled" ? "cancelled" : "completed";
}

/** A run that waits for its user while its agent is held. */
export function waitingOutcome(
  run: { readonly runId: string; readonly sessionId?: string | undefined },
  questions: readonly Question[],
): Outcome {
  const { runId, sessionId } = run;
  return {
    runId,
    ...(sessionId === undefined ? {} : { sessionId }),
    status: "input_required",
    questions: [...questions],
  };
}

/** Failures before anything is started: a call with other arguments may succeed. */
const refusals: ReadonlySet<string> = new Set([
  "request_invalid",
  "boundary_refused",
  "unauthorized",
  "not_found",
  "at_capacity",
  "session_in_use",
  "interaction_expired",
  "idempotency_key_reused",
  "session_elsewhere",
]);

/** A run that failed, or that the server refused. @param runId its id, as far as it has one */
export function failedOutcome(error: AmbitError, runId?: string): Outcome {
  const { code, message, retryable, gaps, issues, result } = error;
  const id = result?.runId ?? runId;
  const output = result?.output;
  return {
    ...(id === undefined ? {} : { runId: id }),
    ...(result?.sessionId === undefined ? {} : { sessionId: result.sessionId }),
    status: code === "run_cancelled" ? "cancelled" : refusals.has(code) ? "refused" : "failed",
    ...(output === undefined || output === "" ? {} : { output }),
    error: {
      code,
      message,
      retryable,
      gaps: gaps.map((gap) => ({ ...gap })),
      issues: issues.map(({ path, message: reason }) => ({ path, message: reason })),
    },
    ...(result?.usage === undefined ? {} : { usage: result.usage }),
    ...(result?.receipt === undefined ? {} : { receipt: result.receipt }),
  };
}

/** Arguments that a tool doesn't take. */
export function invalidOutcome({ issues }: z.ZodError): Outcome {
  return refusedOutcome(
    issues.map(({ path, message }) => ({ path: ["arguments", ...path].join("."), message })),
  );
}

export function refusedOutcome(issues: readonly Issue[]): Outcome {
  const message = "The call is invalid.";
  return {
    status: "refused",
    error: { code: "request_invalid", message, retryable: false, gaps: [], issues: [...issues] },
  };
}

/**
 * A short text for the model, and everything as structured content.
 *
 * @param embedded files that the result has itself, by their paths
 */
export function toolResultOf(
  outcome: Outcome,
  embedded: ReadonlyMap<string, FileContent> = new Map(),
): CallToolResult {
  return {
    content: [{ type: "text", text: textOf(outcome) }, ...fileBlocks(outcome, embedded)],
    structuredContent: outcome,
    isError: outcome.error !== undefined,
  };
}

/** Files, or links that a client opens by itself, or, where the server's address isn't known, reads over its connection. */
function fileBlocks(
  { files = [], runId = "" }: Outcome,
  embedded: ReadonlyMap<string, FileContent>,
): CallToolResult["content"] {
  return files.slice(0, maxListed).map(({ path: name, size, url = "" }) => {
    const resource = embedded.get(name);
    if (resource !== undefined) return { type: "resource" as const, resource };
    const uri = URL.canParse(url) ? url : fileUri(runId, name);
    return { type: "resource_link" as const, name, uri, size };
  });
}

function textOf(outcome: Outcome): string {
  const {
    status,
    output = "",
    stopReason,
    error,
    questions = [],
    changes = [],
    files = [],
    warnings = [],
  } = outcome;
  const parts = [
    ...(output === "" ? [] : [cutOutput(output)]),
    ...(error === undefined ? [] : [failureText(status, error)]),
    ...(status === "input_required" ? [questionsText(questions)] : []),
    ...(status === "cancelled" && error === undefined ? ["The run was cancelled."] : []),
    ...(status === "completed" && stopReason !== undefined && stopReason !== "end_turn"
      ? [`The agent stopped early: ${stopReason}.`]
      : []),
    ...(changes.length === 0 ? [] : [`Changed:\n${listed(changes.map((c) => `${c.change} ${c.path}`))}`]),
    ...(files.length === 0 ? [] : [`Files:\n${listed(files.map((f) => `${f.path} (${f.size} bytes)`))}`]),
    ...(warnings.length === 0 ? [] : [`Note:\n${listed(warnings.map(({ message }) => message))}`]),
    ...(output === "" && status === "completed" ? ["The agent ended without a text."] : []),
  ];
  const { runId } = outcome;
  return [...parts, ...(runId === undefined ? [] : [`(run ${runId})`])].join("\n\n");
}

function cutOutput(output: string): string {
  if (output.length <= maxOutput) return output;
  return `${output.slice(0, maxOutput)}…\n\n(${output.length} characters; structuredContent.output has all)`;
}

function failureText(status: Outcome["status"], error: NonNullable<Outcome["error"]>): string {
  const { code, message, retryable, gaps = [], issues = [] } = error;
  const verb = status === "refused" ? "was refused" : status === "cancelled" ? "was cancelled" : "failed";
  return [
    `The run ${verb} (${code}): ${message}`,
    ...gaps.map((gap) => `- ${gap.actor} · ${gap.capability}: ${gap.reason}. Fix: ${gap.fix}`),
    ...issues.map(({ path, message: reason }) => `- ${path === "" ? "the request" : path}: ${reason}`),
    ...(retryable ? ["The same call may succeed later."] : []),
  ].join("\n");
}

function questionsText(questions: readonly Question[]): string {
  if (questions.length === 0) return "The run paused for a question that is over: go on with a prompt.";
  return [
    "The run waits for its user. Ask them, and pass on what they say with continue_run:",
    ...questions.map(({ id, kind, message }) => {
      const answer = kind === "user_approval" ? '"approved": true or false' : '"output": …';
      return `- ${message}\n  {"id": ${JSON.stringify(id)}, ${answer}}`;
    }),
  ].join("\n");
}

function listed(lines: readonly string[]): string {
  const shown = lines.slice(0, maxListed).map((line) => `- ${line}`);
  const more = lines.length - shown.length;
  return [...shown, ...(more > 0 ? [`- and ${more} more`] : [])].join("\n");
}

/** What is known of a message of the agent that has begun. */
export interface Spoken {
  readonly text: string;
}

/** Characters of what a progress notification says. */
const maxProgress = 200;

/** What a progress notification says of an event; undefined where a user has nothing to see. Pure. */
export function progressOf(spoken: Spoken, event: AgentEvent): readonly [Spoken, string | undefined] {
  switch (event.type) {
    case "message_start":
      return [{ text: "" }, undefined];
    case "message_delta":
      // Only the beginning is shown.
      return [{ text: (spoken.text + event.delta).slice(0, maxProgress) }, undefined];
    case "message_end":
      return [{ text: "" }, shown(spoken.text)];
    default:
      return [spoken, sentenceOf(event)];
  }
}

function sentenceOf(event: AgentEvent): string | undefined {
  switch (event.type) {
    case "message":
      return shown(event.text);
    case "tool_call":
      return shown(`calls ${event.name ?? "a tool"}${firstText(event.input)}`);
    case "interaction_request":
      return shown(`waits for an answer: ${event.payload?.toolName ?? event.kind}`);
    case "boundary_decision":
      return event.allowed ? undefined : shown(`the boundary refused ${event.target}: ${event.reason}`);
    case "mcp_server_failed":
      return shown(`the MCP server ${event.serverName} failed: ${event.message}`);
    case "file":
      return shown(`file ${event.path ?? event.url}`);
    case "data":
      return event.name === "plan" ? planText(event.data) : undefined;
    default:
      return undefined;
  }
}

const argumentsSchema = z.record(z.string(), z.unknown());

/** The argument that tells most: the first text. */
function firstText(input: unknown): string {
  const { data = {} } = argumentsSchema.safeParse(input);
  const text = Object.values(data).find((value) => typeof value === "string");
  return text === undefined ? "" : `: ${text}`;
}

const planSchema = z.object({ entries: z.array(z.object({ content: z.string(), status: z.string() })) });

function planText(plan: unknown): string | undefined {
  const { data } = planSchema.safeParse(plan);
  if (data === undefined) return undefined;
  const done = data.entries.filter(({ status }) => status === "completed").length;
  const current = data.entries.find(({ status }) => status === "in_progress");
  return shown(`plan ${done}/${data.entries.length}${current === undefined ? "" : `: ${current.content}`}`);
}

function shown(text: string): string | undefined {
  const line = text.trim().replaceAll(/\s+/g, " ");
  if (line === "") return undefined;
  return line.length > maxProgress ? `${line.slice(0, maxProgress - 1)}…` : line;
}
