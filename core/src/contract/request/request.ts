import { z } from "zod";
import { headersSchema, httpUrlSchema } from "../values/http.js";
import { isJsonObject, jsonObjectSchema } from "../values/json.js";
import { snapshotIdSchema } from "../values/names.js";
import { secret } from "../values/secret.js";
import { credentialSchema, sandboxCredentialSchema } from "./boundary/credentials.js";
import { portSchema, sandboxPermissionSchema } from "./boundary/sandbox-permission.js";
import { environmentSchema } from "./environment.js";
import { limits } from "./limits.js";
import { messageSchema } from "./message.js";
import { budgetSchema, modelConnectionSchema, reasoningEffortSchema } from "./model.js";
import { outputsSchema } from "./outputs.js";
import { harnessFileSchema, skillSchema } from "./skill.js";
import { mcpServerSchema } from "./tools/mcp-server.js";
import { permissionsSchema } from "./tools/permissions.js";
import { toolCallbackSchema, toolSpecSchema } from "./tools/tool.js";
import { workspaceSchema } from "./workspace.js";

/** Names one run, for `POST /runs/{runId}/cancel` and for logs. */
export const runIdSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}$/,
    "must be 1 to 128 of A-Z a-z 0-9 _ . : -, beginning with a letter or digit",
  );

/**
 * Names a run among those of all callers: two tenants may use the same id. The operator's runs have their ids as keys.
 *
 * @param tenant the project of the tenant that began it; undefined: the operator.
 */
export function runKey(id: string, tenant: string | undefined): string {
  return tenant === undefined ? id : `${tenant}/${id}`;
}

/** The id by which the callers know the run of a key. It has no `/`. */
export function idOfRun(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}

/** The one thing that a new session begins as a copy of. */
const forkSchema = z
  .strictObject({
    session: z.string().min(1).max(256).optional().meta({
      description: "The id of a session of the same project on this runner that no run uses now.",
    }),
    snapshot: snapshotIdSchema.optional().meta({
      description: "The id of a snapshot of the same project: `POST /sessions/{sessionId}/snapshot`.",
    }),
  })
  .refine(({ session, snapshot }) => (session === undefined) !== (snapshot === undefined), {
    error: "must have either session or snapshot",
  });
export type ForkRequest = z.infer<typeof forkSchema>;

/** What happens to a run if another run has its session. */
const whenBusySchema = z.enum(["refuse", "queue", "interrupt"]);

/** Whether this run waits if another run has its session. Default: it is refused. */
export function waitsForSession(request: {
  readonly whenBusy?: z.infer<typeof whenBusySchema>;
  readonly sessionId?: string;
}): boolean {
  return request.sessionId !== undefined && (request.whenBusy ?? "refuse") !== "refuse";
}

/** What happens to a run whose reader disconnects before its result. */
const onDisconnectSchema = z.enum(["cancel", "continue"]);

/**
 * What happens to this run when its reader disconnects. Default: a run of a session continues, since the session's next
 * turn builds on it; any other is cancelled, since its result would have no reader.
 */
export function onDisconnectOf(request: {
  readonly onDisconnect?: z.infer<typeof onDisconnectSchema>;
  readonly sessionId?: string;
}): z.infer<typeof onDisconnectSchema> {
  return request.onDisconnect ?? (request.sessionId === undefined ? "cancel" : "continue");
}

/** How a run waits for the user when a call asks for one. */
export const interactionSettingsSchema = z.strictObject({
  waitMs: z.int().nonnegative().max(86_400_000).default(0).meta({
    description:
      "Milliseconds that a call may wait for a live answer (`POST /runs/{runId}/interactions/{id}`) before the run pauses. Default 0: it pauses immediately. Never longer than the agent or the runner lets a call wait.",
  }),
});

/** A live answer: to a `user_approval`, whether the call may be made; to the other kinds, the call's output. */
export const interactionAnswerSchema = z.union([
  z.strictObject({ approved: z.boolean() }),
  z.strictObject({ output: z.unknown(), isError: z.boolean().default(false) }),
]);
export type InteractionAnswer = z.infer<typeof interactionAnswerSchema>;

/** The events of webhooks, named as the Standard Webhooks specification recommends. */
export const webhookEventSchema = z.enum([
  "run.finished",
  "run.failed",
  "interaction.requested",
  "interaction.expired",
]);

/** The most characters of a receiver's address. */
const maxUrlLength = 2_048;

const webhookSchema = z.strictObject({
  url: secret(httpUrlSchema.max(maxUrlLength), "address").meta({
    description:
      "The receiver's address. The runner posts to it directly; redirects are not followed. The store holds it encrypted.",
  }),
  events: z
    .array(webhookEventSchema)
    .min(1)
    .max(webhookEventSchema.options.length)
    .default(webhookEventSchema.options)
    .meta({
      description: `What is sent: \`${webhookEventSchema.options.join("`, `")}\`. Default: all of them. A paused run has finished, with the \`stopReason\` \`paused\`.`,
    }),
});
export type Webhook = z.infer<typeof webhookSchema>;

const contextSchema = z.strictObject({
  propagation: z
    .strictObject({
      traceparent: z.string().optional().meta({
        description: "W3C trace context. Its trace id is the result's `traceId`.",
      }),
      tracestate: z.string().optional().meta({ description: "W3C trace state, passed on with the trace." }),
      baggage: z.string().optional().meta({ description: "W3C baggage, passed on to `toolCallback`." }),
    })
    .optional()
    .meta({ description: "The caller's trace. Default: that of the headers." }),
});

const contentCaptureSchema = z.strictObject({
  enabled: z.boolean().optional().meta({
    description:
      "True: prompts, output, and arguments and results of tools are part of the trace. Default: false.",
  }),
});

const captureSchema = z.strictObject({
  content: contentCaptureSchema.optional().meta({
    description: "Whether content may be captured.",
  }),
});

const otlpSchema = z.strictObject({
  endpoint: secret(httpUrlSchema, "url").optional().meta({
    description:
      "Its URL: OTLP over HTTP, the base or the whole path (`…/v1/traces`). Default: where the operator's configuration sends traces, if anywhere.",
  }),
  headers: secret(headersSchema, "headers").optional().meta({
    description: "Its headers, such as an API key.",
  }),
});

const telemetrySchema = z.strictObject({
  capture: captureSchema.optional().meta({ description: "What may be captured." }),
  exporters: z
    .strictObject({
      otlp: otlpSchema.optional().meta({ description: "An OTLP exporter." }),
    })
    .optional()
    .meta({ description: "Where the run's trace goes." }),
});

/** One turn of one agent. Every key is optional; an unknown key is refused by its path. */
export const runRequestSchema = z.strictObject({
  runId: runIdSchema.optional().meta({
    description:
      "Names the run, so that it can be cancelled before its result is known; the header `Idempotency-Key` does the same, and with a store gives the run of that id again. 1 to 128 of `A-Z a-z 0-9 _ . : -`. Refused while a run of the same token's project with this id is in progress, or stored. Default: an id that the runner generates.",
  }),
  harness: z.string().min(1).optional().meta({
    description: "The agent to run, by its id or an alias. Default: the first one loaded.",
  }),
  sandbox: z.string().min(1).optional().meta({
    description:
      "The sandbox backend, by name. Default: the first one loaded that covers the whole boundary.",
  }),
  sessionId: z.string().max(256).optional().meta({
    description:
      "Names the session, which keeps the sandbox, workspace and agent between runs. At most 256 characters. Blank means absent: the session ends with the run.",
  }),
  conversation: z.enum(["continue", "new"]).optional().meta({
    description:
      "`continue` or `new`: whether the agent continues the session's conversation. `new` drops what the agent remembers and keeps the files, which is the way out of a conversation that has become too long or that its model refuses; earlier `messages` are replayed if the request has them. Default: `continue`.",
  }),
  agentsMd: z.string().optional().meta({
    description: "Standing instructions, written to the file of the workspace where the agent reads them.",
  }),
  platformInstructions: z.string().optional().meta({
    description:
      "Standing instructions of the platform, before the author's: in front of `appendSystemPrompt` where the agent takes one, else of `agentsMd`. A change alone doesn't restart the agent of a kept session.",
  }),
  turnContext: z.string().optional().meta({
    description:
      "Facts that hold for this turn only: put in front of its prompt, and not part of the conversation that later turns get.",
  }),
  systemPrompt: z.string().optional().meta({
    description: "Replaces the agent's system prompt. An issue for an agent that doesn't support it.",
  }),
  appendSystemPrompt: z.string().optional().meta({
    description: "Added to the agent's system prompt. An issue for an agent that doesn't support it.",
  }),
  model: z.string().optional().meta({
    description: "The model, as the agent names it, or `provider/model`. Default: the agent's own.",
  }),
  reasoningEffort: reasoningEffortSchema.optional().meta({
    description:
      "How much the model reasons: `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`. An issue for an agent that doesn't have this value. Default: the agent's own.",
  }),
  messages: z
    .array(messageSchema)
    .max(limits.messages)
    .default([])
    .meta({
      description: `The conversation, oldest first, at most ${limits.messages.toLocaleString("en")} messages. The last user message with content is the prompt. Tool results at the end continue the turn that waited for them. May be absent or empty where an answer to the session's latest question is stored: the turn then continues with that answer.`,
    }),
  customTools: z
    .array(toolSpecSchema)
    .max(limits.tools)
    .default([])
    .meta({ description: `Tools, at most ${limits.tools.toLocaleString("en")}.` }),
  toolCallback: toolCallbackSchema.optional().meta({
    description: "Where `callback` tools are executed. Without an endpoint it counts as absent.",
  }),
  mcpServers: z
    .array(mcpServerSchema)
    .max(limits.mcpServers)
    .default([])
    .meta({ description: `MCP servers of the user, at most ${limits.mcpServers}.` }),
  skills: z
    .array(skillSchema)
    .max(limits.skills)
    .default([])
    .meta({
      description: `Skills, at most ${limits.skills}, written into the workspace where agents find them.`,
    }),
  harnessFiles: z
    .array(harnessFileSchema)
    .max(limits.harnessFiles)
    .default([])
    .meta({
      description: `Files to write into a new workspace before the agent starts, at most ${limits.harnessFiles.toLocaleString("en")}.`,
    }),
  workspace: workspaceSchema.optional().meta({
    description: "What a new workspace begins with. Default: `harnessFiles` and skills only.",
  }),
  environment: environmentSchema.optional().meta({
    description:
      "The image that the sandbox must have, and what is prepared in a new workspace before the agent starts, by commands with a boundary of their own, and kept for later runs. Commands need `sandboxPermission.filesystem` to be `workspace`, or `on` in a sandbox with an image. Default: neither.",
  }),
  fork: forkSchema.optional().meta({
    description:
      "The new session begins as a copy of another one's workspace, home and conversation. A session that has begun already ignores it. Default: it begins empty.",
  }),
  ports: z
    .array(portSchema)
    .max(limits.ports)
    .optional()
    .meta({
      description: `Ports inside the sandbox that get a URL on the runner, at most ${limits.ports}: HTTP and WebSocket, signed, and closed with the session. The event \`preview\` has each URL. Needs \`server.preview\` in the server's configuration, and a sandbox that can carry a connection to exactly these ports. Default: nothing inside can be reached.`,
    }),
  outputs: outputsSchema.optional().meta({
    description:
      "What leaves the workspace when the run ends or pauses: `GET /runs/{runId}/files`, `/patch` and `/archive` have it as long as the run is kept. Default: nothing.",
  }),
  modelConnection: modelConnectionSchema.optional().meta({
    description: "How the agent reaches its model.",
  }),
  budget: budgetSchema.optional().meta({
    description:
      "What the run may use of its model. A run whose model no loaded model gateway counts is refused.",
  }),
  credentials: z
    .array(credentialSchema)
    .max(limits.credentials)
    .default([])
    .meta({
      description: `Credentials that stay outside the sandbox, at most ${limits.credentials}. Inside there is a placeholder; the egress proxy replaces it with the value in requests to its hosts. A sandbox that can't do that refuses the run.`,
    }),
  sandboxCredentials: z
    .array(sandboxCredentialSchema)
    .max(limits.credentials)
    .optional()
    .meta({
      description: `Credentials that the agent and its commands can read in their environment, at most ${limits.credentials}. The receipt names them; under \`sandboxPermission.secrets: "hidden"\` the run is refused.`,
    }),
  permissions: permissionsSchema.default({ default: "allow_reads" }).meta({
    description: "Whether a call may run, when neither its tool nor its server says.",
  }),
  sandboxPermission: sandboxPermissionSchema.default({ enforcement: "strict" }).meta({
    description: "The boundary: what the run may touch. It is guaranteed, or the run is refused.",
  }),
  context: contextSchema.optional().meta({ description: "What this call is part of." }),
  telemetry: telemetrySchema.optional().meta({
    description:
      "The run's trace, exported by `@ambit/telemetry-opentelemetry`. Credentials are redacted in it.",
  }),
  harnessMode: z.string().optional().meta({
    description: "A mode of the agent, such as Codex's `read-only`. An issue for an agent without this mode.",
  }),
  interactions: interactionSettingsSchema.optional().meta({
    description:
      "How the run waits for its user when a call needs one: a client tool, or a permission that asks.",
  }),
  detach: z.boolean().optional().meta({
    description:
      "True: the run is answered with 202 and its address, `/runs/{runId}`, and continues in the background; the header `Prefer: respond-async` does the same, and lets it wait for a free slot. Needs a store. Default: false.",
  }),
  onDisconnect: onDisconnectSchema.optional().meta({
    description:
      "`cancel` or `continue`: what happens to the run when its caller disconnects before the result. Default: `continue` with a `sessionId`, `cancel` without. A run that continues can be cancelled and killed, and its time limits apply.",
  }),
  webhook: webhookSchema.optional().meta({
    description:
      "Where the run's outcome and its questions are posted, signed by the Standard Webhooks specification. Needs a store, and a secret in the server's configuration.",
  }),
  runContext: jsonObjectSchema.optional().meta({
    description:
      "The values that `$ctx.…` bindings of tools refer to; `project.id` is the project where `projectId` is absent. The model never sees them.",
  }),
  whenBusy: whenBusySchema.optional().meta({
    description:
      "What happens to this run while another one has its session. `refuse`: it fails with `session_in_use`. `queue`: it waits, in the order of arrival and without one of the server's slots, until those before it have ended. `interrupt`: the runs of the session before it are cancelled, those that wait included, and it begins when they have ended; what they have done stays in the conversation. A run that waits has the state `queued`. Without a `sessionId` it changes nothing. Default: `refuse`.",
  }),
  turnId: z.string().max(256).optional().meta({
    description:
      "The platform's id of the turn, which `POST /cancel` names. A run of a session begins with an event `turn` that has it. Default: the run's id.",
  }),
  projectId: z.string().optional().meta({
    description:
      "Separates sessions with the same id by project, also for `POST /kill`. Default: `runContext.project.id`.",
  }),
});
export type RunRequest = z.infer<typeof runRequestSchema>;

/**
 * The project that a request belongs to: `projectId`, or else `runContext.project.id`. Undefined if neither is a
 * string with a character other than white space.
 *
 * It separates sessions: runs of two projects never share one, even with the same `sessionId`.
 */
export function projectOf({
  projectId,
  runContext,
}: Pick<RunRequest, "projectId" | "runContext">): string | undefined {
  const project = runContext?.project;
  const fromContext = isJsonObject(project) ? project.id : undefined;
  return [projectId, fromContext].find(isName);
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "";
}
