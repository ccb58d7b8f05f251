import {
  actorDescriptionSchema,
  contentBlockSchema,
  failedResultSchema,
  gapSchema,
  jsonObjectSchema,
  outputFileSchema,
  runResultSchema,
  snapshotInfoSchema,
  streamRecordSchema,
} from "@ambit/core/contract";
import { tallyDimensions } from "@ambit/durable/store";
import { z } from "zod";
import { pageRights } from "../tenants/page-grant.js";
import { verificationSchema } from "../verifications.js";

/** The records of a stream: `StreamRecord`, or for a refused run the one record with the reason. */
export const responseRecordSchema = z.discriminatedUnion("kind", [
  streamRecordSchema.options[0],
  z.strictObject({ kind: z.literal("result"), result: z.union([runResultSchema, failedResultSchema]) }),
]);

/** `GET /runs/{runId}/files`: what left the workspace: files that `include` matches, and those that the patch changes. */
export const outputFilesResponseSchema = z.strictObject({
  files: z.array(
    outputFileSchema.extend({
      /** With `?urlTtlMs=`: where this file can be read without another token, below `server.publicUrl` or relative to the server. */
      url: z.string().optional(),
    }),
  ),
});
export type OutputFilesResponse = z.infer<typeof outputFilesResponseSchema>;

/** `GET /sessions/{sessionId}/files`: one folder of an open session's workspace. */
export const sessionFilesResponseSchema = z.strictObject({
  /** The folder, relative to the workspace; empty: the workspace itself. */
  path: z.string(),
  /** Sorted by name. */
  entries: z.array(
    z.strictObject({
      name: z.string(),
      /** `special`: a device, a pipe or a socket. Only a file can be read. */
      kind: z.enum(["folder", "file", "link", "special"]),
      /** In bytes. */
      size: z.int(),
      modifiedAt: z.iso.datetime(),
      executable: z.boolean(),
    }),
  ),
  /** False: there are more names, or some that aren't printable text. */
  complete: z.boolean(),
});
export type SessionFilesResponse = z.infer<typeof sessionFilesResponseSchema>;

const terminalSide = (what: string) => z.int().min(1).max(1_000).meta({ description: what });
const terminalSizeShape = {
  columns: terminalSide("Characters of a line."),
  rows: terminalSide("Lines."),
};

/** `POST /sessions/{sessionId}/terminals` */
export const terminalRequestSchema = z.strictObject({
  columns: terminalSizeShape.columns.default(80),
  rows: terminalSizeShape.rows.default(24),
});

/** `POST /sessions/{sessionId}/terminals/{terminalId}` */
export const terminalInputSchema = z
  .strictObject({
    input: z
      .string()
      .min(1)
      .max(65_536)
      .optional()
      .meta({ description: "What is typed, as a terminal sends it: Enter is a carriage return." }),
    columns: terminalSizeShape.columns.optional(),
    rows: terminalSizeShape.rows.optional(),
  })
  .refine(({ columns, rows }) => (columns === undefined) === (rows === undefined), {
    error: "columns and rows belong together",
  })
  .refine(({ input, columns }) => input !== undefined || columns !== undefined, {
    error: "needs input, or columns and rows",
  });

/** The lines of `POST /sessions/{sessionId}/terminals`. */
export const terminalRecordSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("opened"), terminalId: z.string() }),
  z.strictObject({
    kind: z.literal("output"),
    data: z
      .base64()
      .meta({ description: "Bytes that the terminal prints, in base64: a character may be cut." }),
  }),
  z.strictObject({
    kind: z.literal("ended"),
    exitCode: z.int().nullable().meta({ description: "The shell's; null where something else ended it." }),
    reason: z.string().optional().meta({ description: "Why it ended before its shell did." }),
  }),
]);
export type TerminalRecord = z.infer<typeof terminalRecordSchema>;

/** `POST /runs/{runId}/messages` */
export const runMessageSchema = z.strictObject({
  content: z
    .union([z.string().min(1), z.array(contentBlockSchema).min(1)])
    .meta({ description: "Text, or a list of blocks that the agent takes in a prompt." }),
});

const agentVersion = z.strictObject({
  version: z.string(),
  /** The version that the plugin was tested with. */
  tested: z.string(),
});

/** `GET /host`: what `ambit agents`, `ambit doctor` and the last `ambit verify` say of a replica's host. */
export const hostResponseSchema = z.strictObject({
  /** Of Ambit. */
  version: z.string(),
  /** Of Node.js. */
  node: z.string(),
  agents: z.array(
    z.strictObject({
      harness: z.string(),
      title: z.string(),
      /** Whether it is part of its plugin: then nothing is installed. */
      comesAlong: z.boolean(),
      /** Where that is an adapter, `agent` is the agent behind it. Absent: it isn't installed. */
      installed: agentVersion
        .extend({
          agent: agentVersion.partial({ tested: true }).extend({ name: z.string() }).optional(),
        })
        .optional(),
      /** What `ambit agents install` brings. */
      installs: z.array(z.strictObject({ name: z.string(), version: z.string() })),
    }),
  ),
  /** What the configuration requires, and which sandboxes guarantee it here. None: runs under it are refused. */
  rules: z.array(
    z.strictObject({
      name: z.string(),
      /** As `ambit doctor --require` takes it. */
      requires: z.string(),
      metBy: z.array(z.string()),
      gaps: z.array(gapSchema),
    }),
  ),
  /** What else the operator should look at, a sentence each. */
  notices: z.array(z.string()),
  /** The last `ambit verify` of each sandbox and capability, by the user that runs this server. */
  verifications: z.array(verificationSchema),
});
export type HostResponse = z.infer<typeof hostResponseSchema>;

const count = z.int().nonnegative();

const tallySchema = z.strictObject({
  /** How many runs came to what. */
  runs: z.strictObject({ completed: count, paused: count, cancelled: count, failed: count }),
  /** Tokens sent to models, including cached ones, as the provider or the agent counts them. */
  inputTokens: count,
  outputTokens: count,
  /** US dollars, of models that have a price. */
  usd: z.number(),
  /** Milliseconds from the begin of each run to its end. */
  sandboxMs: count,
});

const date = z.iso.date();

/** `GET /usage`: what the runs used that ended on these days (UTC). */
export const usageResponseSchema = z.strictObject({
  from: date,
  to: date,
  by: z.enum(tallyDimensions),
  total: tallySchema,
  /** At most 1,000: days, the newest first, or the groups with the most runs. */
  groups: z.array(
    /** A day, project, agent or model. Absent: no project, or an unknown model. */
    tallySchema.extend({ key: z.string().optional() }),
  ),
});
export type UsageResponse = z.infer<typeof usageResponseSchema>;

const quotaSchema = z.strictObject({ limit: z.number(), used: z.number() });

/** `GET /quotas`: what each project with a token may use, over all replicas. A quota that it doesn't have is absent. */
export const quotasResponseSchema = z.strictObject({
  quotas: z.array(
    z.strictObject({
      projectId: z.string(),
      concurrentRuns: quotaSchema.optional(),
      /** Runs that began within the last 60 seconds. */
      runsPerMinute: quotaSchema.optional(),
      /** Named sessions that are open. */
      sessions: quotaSchema.optional(),
      /** US dollars on this day (UTC), which ends at `resetsAt`. */
      usdPerDay: quotaSchema.extend({ resetsAt: z.iso.datetime() }).optional(),
    }),
  ),
});
export type QuotasResponse = z.infer<typeof quotasResponseSchema>;

/** `GET /plugins`: every actor's claims, and the findings of its probe on this host, with their time. */
export const pluginsResponseSchema = z.strictObject({ actors: z.array(actorDescriptionSchema) });

/**
 * `GET /health`: the server is up, whether it is still probing its host, and the name by which callers find its sessions
 * again. Nothing else, since it needs no token.
 */
export const healthResponseSchema = z.strictObject({
  status: z.literal("ok"),
  probing: z.boolean(),
  replicaId: z.string(),
});
export type HealthResponse = z.infer<typeof healthResponseSchema>;

/** `GET /health` of the health listener, with 503: the process lives, and its event loop doesn't turn. */
export const stalledResponseSchema = z.strictObject({
  status: z.literal("stalled"),
  /** Milliseconds since its last turn. */
  stalledForMs: z.int(),
  replicaId: z.string(),
});
export type StalledResponse = z.infer<typeof stalledResponseSchema>;

/** `GET /ready`: whether the server takes runs now. 503 unless its status is `ready`. */
export const readyResponseSchema = z.strictObject({
  /** `stalled`: its event loop doesn't turn, as only the health listener can say. */
  status: z.enum(["ready", "starting", "unavailable", "draining", "stalled"]),
  /** `none`: no store is loaded, and runs end with the process. */
  store: z.enum(["opening", "reachable", "unreachable", "none"]),
});
export type ReadyResponse = z.infer<typeof readyResponseSchema>;

/**
 * `GET /subscription-status`: for each name of each harness, whether this runner has the agent's own login. It never
 * does, since every session has a fresh home: a run brings its credential in `modelConnection`.
 */
export const subscriptionStatusSchema = z.strictObject({
  version: z.literal(1),
  harnesses: z.record(z.string(), z.strictObject({ state: z.literal("not_configured") })),
});
export type SubscriptionStatus = z.infer<typeof subscriptionStatusSchema>;

/** `POST /kill`: the session to end, with the run that uses it. */
export const killRequestSchema = z.strictObject({
  sessionId: z.string().min(1).max(256),
  projectId: z.string().nullish(),
});

/** Milliseconds for which a page's token is valid: a day at most. */
const dayMs = 86_400_000;

/** Milliseconds for which a page's token, or the URL of a file, is valid. */
export const tokenLifetimeSchema = z.int().min(1_000).max(dayMs);

/** `POST /tokens`: what a page in a user's browser may do with one session. */
export const tokenRequestSchema = z
  .strictObject({
    sessionId: z
      .string()
      .max(256)
      .refine((id) => id.trim() !== "", "must name a session")
      .meta({ description: "The session, which needn't exist yet." }),
    projectId: z.string().nullish().meta({
      description: "The session's project. Default: that of `request`; a tenant's own.",
    }),
    may: z
      .array(z.enum(pageRights))
      .min(1)
      .transform((rights) => pageRights.filter((right) => rights.includes(right)))
      .meta({
        description:
          "`read`: the session's runs with their events, files and questions. `answer`: its questions. `run`: begin runs of it, and cancel them.",
      }),
    ttlMs: tokenLifetimeSchema.default(900_000).meta({
      description: "Milliseconds until it expires. Default: 900,000 (15 minutes); at most a day.",
    }),
    request: jsonObjectSchema.optional().meta({
      description:
        "Everything of the page's runs but `sessionId`, `messages` and `runId`: a RunRequest, planned now. Needed for `run`. It is encrypted in the token, and the page can't read it.",
    }),
  })
  .refine(({ may, request }) => may.includes("run") || request === undefined, {
    path: ["request"],
    error: 'has no use: a page that begins no runs (`may` lacks "run") needs none',
  })
  .refine(({ may, request }) => !may.includes("run") || request !== undefined, {
    path: ["request"],
    error: 'is needed, since `may` has "run": everything of the page\'s runs but their messages',
  });

/** `POST /tokens`: the token, and when it expires (ISO 8601). */
export const tokenResponseSchema = z.strictObject({ token: z.string(), expiresAt: z.iso.datetime() });
export type TokenResponse = z.infer<typeof tokenResponseSchema>;

/** `POST /cancel`: the turn to stop. Keys that a newer platform adds are ignored. */
export const cancelTurnRequestSchema = z.object({
  /** Of the command: a repeated one gets the same response. */
  id: z.string().min(1).max(256),
  sessionId: z.string().min(1).max(256),
  projectId: z.string().nullish(),
  kind: z.literal("cancel").default("cancel"),
  /** The turn, as the event `turn` names it. Without it, the one that ran when the command was given. */
  target: z.object({ turnId: z.string().nullish(), expectedTurnId: z.string().nullish() }).nullish(),
  /** When the command was given: it stops no turn that began later, unless it names it. */
  createdAt: z.union([z.iso.datetime({ offset: true }), z.number().nonnegative()]).nullish(),
});

/** `obsolete`: nothing was stopped, and `state` says why. `id` is the turn's, empty where there is none. */
export const cancelTurnResponseSchema = z.strictObject({
  ok: z.literal(true),
  result: z.enum(["applied", "obsolete"]),
  execution: z.strictObject({
    id: z.string(),
    state: z.enum(["stopped", "not_running", "superseded_by_newer_turn"]),
  }),
});
export type CancelTurnResponse = z.infer<typeof cancelTurnResponseSchema>;

/** `ended` is false if there was nothing to end, which isn't an error; `message` then names what was not found. */
export const endedResponseSchema = z.strictObject({
  ok: z.literal(true),
  ended: z.boolean(),
  message: z.string().optional(),
});
export type EndedResponse = z.infer<typeof endedResponseSchema>;

/** `GET /snapshots`. */
export const snapshotsResponseSchema = z.strictObject({ snapshots: z.array(snapshotInfoSchema) });
export type SnapshotsResponse = z.infer<typeof snapshotsResponseSchema>;

/** `POST /runs/{runId}/interactions/{interactionId}`. */
export const forwardedResponseSchema = z.strictObject({ ok: z.literal(true) });
export type ForwardedResponse = z.infer<typeof forwardedResponseSchema>;
