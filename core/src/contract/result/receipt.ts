import { z } from "zod";
import { capabilitySchema, domains } from "../capability.js";
import { portSchema } from "../request/boundary/sandbox-permission.js";
import { gapSchema } from "./failure.js";
import { environmentReceiptSchema, outputsReceiptSchema, sourceReceiptSchema } from "./outputs.js";
import { forkReceiptSchema } from "./snapshot.js";

export const siteSchema = z.enum(["sandbox", "runner", "caller"]);
/** Where an actor's effects land: in the sandbox, on this process's host, or with the user. */
export type Site = z.infer<typeof siteSchema>;

/** Observed facts about a process, sandbox or platform, as a flat record: `{ uid: 64001, seccomp: 2 }`. */
export const evidenceSchema = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));
export type Evidence = Readonly<z.infer<typeof evidenceSchema>>;

export const guaranteeSchema = z.strictObject({
  capability: capabilitySchema,
  /** The actor that covers the capability. */
  by: z.string(),
  /** What the probe did on this host to prove the guarantee. */
  how: z.string(),
  /**
   * `attempted`: the probe tried what is forbidden, and failed. `stated`: the author of an executor or tool source on the
   * runner says so; beyond the network, only the attacks that the author brings to the kit can show it.
   */
  basis: z.enum(["attempted", "stated"]),
  /** When the probe proved it (ISO 8601). */
  provenAt: z.string(),
  /** A known weakness of what enforces it on this host, and its fix. The proof holds in spite of it. */
  warning: z.string().optional(),
});
export type Guarantee = z.infer<typeof guaranteeSchema>;

export const receiptActorSchema = z.strictObject({
  kind: z.enum(["sandbox", "executor", "delivery", "harness", "toolSource", "gateway"]),
  name: z.string(),
  site: siteSchema,
  /** `inherited`: it acts only through the sandbox · `mediated`: its channel is the run's own · `outside`: it isn't bound. */
  assurance: z.enum(["guaranteed", "inherited", "mediated", "outside"]),
  touches: z.array(z.enum(domains)),
  /**
   * The tools or MCP servers that it acts for; for a gateway, the model's host; for a sandbox that isn't the agent's, what
   * Ambit's own program in it is for: `workspace.sources[0]`.
   */
  subjects: z.array(z.string()).optional(),
});
export type ReceiptActor = z.infer<typeof receiptActorSchema>;

/**
 * What a run is busy with, one after the other: it opens its sandbox, fills the workspace, starts the agent, which has its turn
 * (`streaming`), collects the outputs and closes what it opened.
 */
export const stageNameSchema = z.enum([
  "opening",
  "filling",
  "starting",
  "streaming",
  "collecting",
  "closing",
]);
export type StageName = z.infer<typeof stageNameSchema>;

export const timedStageSchema = z.strictObject({
  /** `model`: one request to the model through the gateway, during another stage. */
  name: z.enum([...stageNameSchema.options, "model"]),
  /** When it began (ISO 8601), by the clock of the events' `at`. */
  at: z.iso.datetime(),
  durationMs: z.int().nonnegative(),
});
export type TimedStage = z.infer<typeof timedStageSchema>;

/** The applied plan, with the evidence. */
export const receiptSchema = z.strictObject({
  sandbox: z.string(),
  /**
   * `confined`: the sandbox enforces some of its claims, and its probe has proven that on this host. `unconfined`: nothing was
   * proven, whatever its author says, and the run had no boundary.
   */
  confinement: z.enum(["confined", "unconfined"]),
  enforcement: z.enum(["strict", "best_effort"]),
  required: z.array(capabilitySchema),
  guarantees: z.array(guaranteeSchema),
  actors: z.array(receiptActorSchema),
  /** Gaps of actors outside the sandbox that `best_effort` accepted. */
  accepted: z.array(gapSchema),
  /** The classes of its own tools that the agent uses without asking, although the request's default asks: `shell`, `edit`, … */
  unaskedTools: z.array(z.string()).optional(),
  /** The names of credentials that programs in the sandbox can read. */
  visibleCredentials: z.array(z.string()),
  /** The names and hosts of credentials that are added to requests outside the sandbox, which has only placeholders. */
  credentials: z.array(
    z.strictObject({
      name: z.string(),
      hosts: z.array(z.string()),
      /** `broker`: the sandbox's egress, on the way to the hosts · `route`: the model route. */
      by: z.enum(["broker", "route"]),
    }),
  ),
  /** What was observed of this sandbox and of the agent's process. */
  evidence: evidenceSchema,
  /** Connections that reached the boundary's proxy or the model gateway. */
  decisions: z.strictObject({
    allowed: z.int(),
    refused: z.int(),
    /** The number of allowed connections that failed. Absent: none. */
    failed: z.int().positive().optional(),
  }),
  /** The deployer's proxy (`egress.proxy`), through which allowed connections leave the runner. Absent: there is none. */
  egress: z
    .strictObject({
      /** The `host:port` of each proxy. */
      proxies: z.array(z.string()),
      /** Who resolves names on the way through a proxy. `proxy`: their addresses aren't judged. */
      resolve: z.enum(["here", "proxy"]),
    })
    .optional(),
  session: z.strictObject({
    id: z.string(),
    /** `new`, `warm` (the agent itself was kept), or how its history was restored. */
    history: z.enum(["new", "warm", "loaded", "replayed"]),
  }),
  /** What each of the request's sources put into the workspace, if it was new. */
  sources: z.array(sourceReceiptSchema).optional(),
  /** The environment that was prepared, if the request has an `environment` and the workspace was new. */
  environment: environmentReceiptSchema.optional(),
  /** The origin that the session began as a copy of, if the request has a `fork` and the session was new. */
  fork: forkReceiptSchema.optional(),
  /** The ports inside that had a URL on the runner, if the request has `ports`. Nothing else inside could be reached. */
  ports: z.array(portSchema).optional(),
  /** The outputs that left the workspace, if the request has `outputs`. */
  outputs: outputsReceiptSchema.optional(),
  /** How the run spent its time: its stages, and the latest 200 requests to its model, in the order in which they ended. */
  stages: z.array(timedStageSchema).optional(),
});
export type Receipt = z.infer<typeof receiptSchema>;
