import { limits } from "../limits.js";
import { acts, type FieldMeanings, informational, refused } from "./field.js";

const count = (entries: number) => entries.toLocaleString("en");

/** The turn: which agent, which conversation, what it is told, what lies in its workspace. */
export const runFields: FieldMeanings = {
  runId: acts(
    "Names the run, so that it can be cancelled before its result is there; the header `Idempotency-Key` does the same. 1 to 128 of `A-Z a-z 0-9 _ . : -`; refused while a run of that id is under way. Default: one that the runner makes.",
  ),
  harness: acts(
    "The agent to run, by its id or an alias. Default: the first one loaded.",
    "`pi_core`, `pi_agenta` (→ `pi`); `backend`",
  ),
  sandbox: acts(
    "The sandbox backend, by name. Default: the first one loaded that covers the whole boundary.",
  ),
  sessionId: acts(
    "Names the session, which keeps sandbox, workspace and agent between runs. At most 256 characters; blank means absent: a session of this run alone.",
  ),
  projectId: acts(
    "Keeps sessions of equal id apart by project, also for `POST /kill`. Default: `runContext.project.id`.",
  ),
  agentsMd: acts(
    "Standing instructions: written to the file of the workspace where the agent looks for them.",
  ),
  systemPrompt: acts("Replaces the agent's own system prompt; an issue for an agent that can't."),
  appendSystemPrompt: acts("Is added to the agent's system prompt; an issue for an agent that can't."),
  model: acts("The model, as the agent names it, or `provider/model`. Default: the agent's own."),
  harnessMode: acts(
    "A mode of the agent, such as Codex's `read-only`; an issue for an agent that doesn't know it.",
  ),
  interactions: acts(
    "How the run waits for its user when a call needs one: a client tool, a permission that asks.",
  ),
  "interactions.holdMs": acts(
    "Milliseconds that a call may wait for a live answer before the run pauses. Default 0: it pauses at once. The agent's own patience is a limit too.",
  ),
  onDisconnect: acts(
    "`cancel` or `continue`: what becomes of the run when its caller leaves before the result. Default: `continue` with a `sessionId`, `cancel` without. A run that continues can be cancelled and killed, and its time limits hold.",
  ),
  messages: acts(
    `The conversation, oldest first, ${count(limits.messages)} at most. The last user message that says something is the prompt; tool results at the end continue the turn that waited for them.`,
    "`prompt` (→ a last user message)",
  ),
  "messages[].role": acts("`user`, `assistant`, `system` or `tool`.", "`developer` (→ `system`)"),
  "messages[].content": acts("Text, or a list of blocks. Default: empty."),
  "messages[].content[].type": acts(
    "`text`, `image` and `resource` go to the agent; `tool_call` and `tool_result` tell of calls; a `file` or `attachment` with its content in `data` or `uri` becomes an `image` or `resource`; others go to the agent as far as it takes them.",
  ),
  "messages[].content[].text": acts("The text of a `text` block, or of a resource."),
  "messages[].content[].data": acts("The content of an `image` or `resource`: base64, or a `data:` URI."),
  "messages[].content[].mimeType": acts(
    "The media type of `data`. Default: what a `data:` URI says, else `image/png` for an `image`.",
  ),
  "messages[].content[].uri": acts(
    "Where a resource lives; handed to the agent, not fetched. A `data:` URI is its content.",
  ),
  "messages[].content[].toolCallId": acts(
    "Ties a `tool_result` to its `tool_call`. An answer counts under the id of the `interaction_request` (`ask_…`) alone, after the last words of the user or the last message of the assistant.",
  ),
  "messages[].content[].toolName": acts("The tool that was called."),
  "messages[].content[].input": acts(
    "The call's arguments. An answer counts only for a call with the ones that were asked about.",
  ),
  "messages[].content[].output": acts("The call's result, or `{approved}` where a permission was asked for."),
  "messages[].content[].isError": acts("Whether `output` tells of a failure."),
  "messages[].content[].attachmentId": refused(
    "An attachment of this turn lies in the platform's own store, which isn't reachable from here: send its content as an `image` or `resource` block. In earlier messages, and beside its content, it is passed over.",
  ),
  "messages[].content[].filename": informational("The name of an attachment or resource."),
  "messages[].content[].size": informational("The size of an attachment, in bytes."),
  skills: acts(
    `Skills, ${count(limits.skills)} at most, laid into the workspace where agents look for them.`,
  ),
  "skills[].name": acts("Lower-case letters, digits and hyphens; unique. The name of its folder."),
  "skills[].description": acts("When the agent should use it. Default: empty."),
  "skills[].body": acts("The text of its `SKILL.md`."),
  "skills[].files": acts("Files beside its `SKILL.md`."),
  "skills[].files[].path": acts("Relative to the skill's folder, which it can't leave; unique."),
  "skills[].files[].content": acts("The file's text."),
  "skills[].files[].executable": acts("Asks for the executable bit. Default: false."),
  "skills[].disableModelInvocation": acts("Only the user may invoke it, not the model. Default: false."),
  "skills[].allowExecutableFiles": acts(
    "Grants the executable bit to the files that ask for it. Default: false.",
  ),
  harnessFiles: acts(
    `Files to put into a fresh workspace before the agent starts, ${count(limits.harnessFiles)} at most.`,
  ),
  "harnessFiles[].path": acts(
    "Relative to the workspace, which it can't leave: no `..`, NUL or backslash; unique.",
  ),
  "harnessFiles[].content": acts("The file's text."),
  context: acts("What this one call is part of."),
  "context.propagation": acts("The caller's trace.", "`trace`"),
  "context.propagation.traceparent": acts(
    "W3C trace context; its trace id is the result's `traceId`.",
    "`trace.traceparent`",
  ),
  "context.propagation.baggage": informational("W3C baggage."),
  runContext: acts(
    "The values that tools' `$ctx.…` bindings name; `project.id` is the project where `projectId` is absent. The model never sees them.",
  ),
  telemetry: informational(
    "Ambit exports no telemetry of its own. Credentials in it are redacted like all others.",
  ),
  "telemetry.capture": informational("What may be captured."),
  "telemetry.capture.content": informational("Whether content may be captured."),
  "telemetry.capture.content.enabled": informational("True or false. Earlier: `trace.captureContent`."),
  "telemetry.exporters": informational("Where telemetry would go."),
  "telemetry.exporters.otlp": informational("An OTLP exporter."),
  "telemetry.exporters.otlp.endpoint": informational("Its URL. Earlier: `trace.endpoint`."),
  "telemetry.exporters.otlp.headers": informational("Its headers. Earlier: `trace.authorization`."),
  modelCapabilities: informational("What the platform knows of the model; the agent is asked instead."),
  "modelCapabilities.inputModalities": informational("`text`, `image`, …"),
  tools: informational(
    "Names of built-in tools to enable: agents bring their own; `permissions` decides on them.",
  ),
  turnId: informational("The platform's id of the turn."),
  streamId: informational("The platform's id of the stream."),
  effectiveParameters: informational("The platform's own record of what it ran."),
};
