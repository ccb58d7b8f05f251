import { randomUUID } from "node:crypto";
import { isAbsolute } from "node:path";
import { type JsonObject, secret } from "@ambit/core/plugin";
import { z } from "zod";
import { driverLimitsSchema } from "./driver/limits.js";
import { customAgentSchema, variablesSchema } from "./profiles/custom.js";
import { profileIds, profiles } from "./profiles/index.js";

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
    const settings = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
    if (modelConnection === undefined) return settings;
    const { credentials, ...connection } = modelConnection;
    // It replaces the connections of runs, which aren't known yet, and opens none.
    const placeholders = credentials.map((credential) => ({
      ...credential,
      value: `none-yet-${randomUUID()}`,
    }));
    return {
      ...settings,
      modelConnection: JSON.parse(JSON.stringify({ ...connection, credentials: placeholders })),
    };
  });

/** Agents of one kind that are started before anyone asks for them. */
const prewarmSchema = z.strictObject({
  /** The maximum that waits. Each has a sandbox of its own, and takes the place of a run that could begin. */
  agents: z.int().min(1).max(100),
  /** Milliseconds after which one that no run asked for is ended; the next run of the agent starts them again. */
  idleMs: z.int().min(1_000).max(2_147_483_647).default(900_000),
  /** Whether the runs have `customTools`. Some agents must know at their start that there will be some. */
  tools: z.boolean().default(false),
  /** The part of the runs' requests that decides how the agent starts. */
  request: requestSchema,
});

const profileIdSchema = z.enum(profileIds);

const overrideSchema = z.strictObject({
  /** Absolute path of the agent's program or script. Default: its npm package, if that is installed. */
  command: z.string().refine(isAbsolute, "must be an absolute path").optional(),
  /**
   * The program in a sandbox with a separate image: a name on the image's `PATH`, or a path. Default: its usual name.
   */
  commandInImage: z.string().min(1).optional(),
  /** Absolute path of the Node.js that runs an agent which is a script. Default: the runner's own. */
  node: z.string().refine(isAbsolute, "must be an absolute path").optional(),
  /** Variables that this agent gets in every run. A key among them is visible inside, and listed on the receipt. */
  env: variablesSchema.default({}),
});

const settingsSchema = z.strictObject({
  /** The agents that requests can choose. */
  profiles: z
    .array(profileIdSchema)
    .min(1)
    .default([...profileIds]),
  /** The folder whose `node_modules` holds the agents. Default: the working directory. */
  folder: z.string().refine(isAbsolute, "must be an absolute path").optional(),
  /** Settings of one agent, by its profile. */
  overrides: z.partialRecord(profileIdSchema, overrideSchema).default({}),
  /** Further agents that speak ACP, by the name that requests give as `harness`. */
  agents: z
    .record(
      z.string().regex(/^[a-z][a-z0-9_-]*$/, "must be lower-case letters, digits, - and _"),
      customAgentSchema,
    )
    .refine(
      (agents) => !profileIds.some((id) => Object.hasOwn(agents, id)),
      "must not take the name of a profile",
    )
    .default({}),
  /** Agents to start before anyone asks for them, by the agent. Default: none. */
  prewarm: z.record(z.string(), z.array(prewarmSchema).min(1).max(20)).default({}),
  /** Limits for every agent. */
  limits: driverLimitsSchema.prefault({}),
});

export const configSchema = settingsSchema.superRefine(({ prewarm, profiles: loaded, agents }, context) => {
  for (const id of Object.keys(prewarm)) {
    const profile = loaded.find((loadedId) => loadedId === id);
    const custom = Object.hasOwn(agents, id) ? agents[id] : undefined;
    const message =
      profile === undefined && custom === undefined
        ? "isn't an agent that requests can choose: name one of `profiles` or `agents`"
        : profile !== undefined && profiles[profile].ahead === undefined
          ? `isn't known to start ahead of its run: of those that come with Ambit, ${aheadIds.join(", ")} are`
          : profile === undefined && custom?.ahead === undefined
            ? `needs \`agents.${id}.ahead\`, which says what it does at its start`
            : undefined;
    if (message !== undefined) context.addIssue({ code: "custom", path: ["prewarm", id], message });
  }
});

const aheadIds = profileIds.filter((id) => profiles[id].ahead !== undefined);
