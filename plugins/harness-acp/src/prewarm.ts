import { randomUUID } from "node:crypto";
import { type JsonObject, secret } from "@ambit/core/plugin";
import { z } from "zod";

/** A credential that runs bring: its name, and never a value. */
const credentialSchema = z.strictObject({
  binding: z.strictObject({ kind: z.literal("environment"), name: z.string().min(1) }),
  usage: z.enum(["opaque_http", "local_use"]).optional(),
});

const connectionSchema = z.strictObject({
  provider: z.string().optional(),
  deployment: z.string().optional(),
  endpoint: z
    .strictObject({
      baseUrl: secret(z.string(), "url").optional(),
      apiVersion: z.string().optional(),
      region: z.string().optional(),
    })
    .optional(),
  credentialMode: z.enum(["env", "none"]).optional(),
  credentials: z.array(credentialSchema).default([]),
});

/** Anything that JSON can hold: the runner checks it as part of a request. */
const json = z.json().optional();

/** The fields of a request that decide how an agent's process starts. */
const requestSchema = z
  .strictObject({
    /** The backend. Default: as for a request without one. */
    sandbox: z.string().min(1).optional(),
    /** The boundary, exactly as runs have it. Its network is off, or an allowlist. */
    sandboxPermission: z.json(),
    model: z.string().min(1).optional(),
    /** How runs reach the model. Their credentials are named, without values: they stay with the model route. */
    modelConnection: connectionSchema.optional(),
    permissions: json,
    harnessMode: z.string().optional(),
    reasoningEffort: z.string().optional(),
    systemPrompt: z.string().optional(),
    appendSystemPrompt: z.string().optional(),
    platformInstructions: z.string().optional(),
  })
  .transform(({ modelConnection, ...rest }): JsonObject => {
    const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
    if (modelConnection === undefined) return given;
    const { credentials, ...connection } = modelConnection;
    // In place of those of runs, which nobody knows yet. It opens nothing.
    const named = credentials.map((one) => ({ ...one, value: `none-yet-${randomUUID()}` }));
    return { ...given, modelConnection: JSON.parse(JSON.stringify({ ...connection, credentials: named })) };
  });

/** Agents of one kind that are started before anyone asks for them. */
export const prewarmSchema = z.strictObject({
  /** The maximum that waits. Each has a sandbox of its own, and takes the place of a run that could begin. */
  agents: z.int().min(1).max(100),
  /** Milliseconds after which one that no run asked for is ended; the next run of the agent starts them again. */
  idleMs: z.int().min(1_000).max(2_147_483_647).default(900_000),
  /** Whether the runs have `customTools`. Some agents are told at their start that there will be some. */
  tools: z.boolean().default(false),
  /** The part of the runs' requests that decides how the agent starts. */
  request: requestSchema,
});
