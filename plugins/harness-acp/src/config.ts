import { isAbsolute } from "node:path";
import { z } from "zod";
import { driverLimitsSchema } from "./driver/limits.js";
import { prewarmSchema } from "./prewarm.js";
import { customAgentSchema, variablesSchema } from "./profiles/custom.js";
import { profileIds, profiles } from "./profiles/index.js";

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
    const own = loaded.find((one) => one === id);
    const custom = Object.hasOwn(agents, id) ? agents[id] : undefined;
    const message =
      own === undefined && custom === undefined
        ? "isn't an agent that requests can choose: name one of `profiles` or `agents`"
        : own !== undefined && profiles[own].ahead === undefined
          ? `isn't known to start ahead of its run: of those that come with Ambit, ${aheadIds.join(", ")} are`
          : own === undefined && custom?.ahead === undefined
            ? `needs \`agents.${id}.ahead\`, which says what it does at its start`
            : undefined;
    if (message !== undefined) context.addIssue({ code: "custom", path: ["prewarm", id], message });
  }
});

const aheadIds = profileIds.filter((id) => profiles[id].ahead !== undefined);
