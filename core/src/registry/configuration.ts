import { z } from "zod";
import { knownShapeOf, readableIssues } from "../contract/index.js";
import type { Plugin } from "../plugin/index.js";

const pluginSchema = z.custom<Plugin>(isPlugin);

const entrySchema = z.union(
  [
    z.string().min(1),
    pluginSchema,
    z.strictObject({
      /** A package's name, resolved from the configuration's folder, or the plugin itself. */
      use: z.union([z.string().min(1), pluginSchema]),
      /** Checked by the plugin's own schema. */
      config: z.unknown().optional(),
    }),
  ],
  {
    error:
      "must be a package's name, a plugin (an object with name, api, config and register), or { use: either, config }",
  },
);
export type PluginEntry = z.infer<typeof entrySchema>;

export const pluginEntriesSchema = z.array(entrySchema);

export const probeSettingsSchema = z.strictObject({
  /** Milliseconds one probe may take; a claim without a finding by then is not proven. */
  timeoutMs: z.int().positive().default(120_000),
  /** Milliseconds after which evidence is too old to plan with, and the actor is probed again. */
  maxAgeMs: z.int().positive().default(3_600_000),
  /** The same for an actor without a proven claim, such as one whose platform didn't respond. Never above `maxAgeMs`. */
  retryMs: z.int().positive().default(15_000),
});
export type ProbeSettings = z.infer<typeof probeSettingsSchema>;

export function isPlugin(value: unknown): value is Plugin {
  return (
    typeof value === "object" &&
    value !== null &&
    "name" in value &&
    typeof value.name === "string" &&
    "api" in value &&
    "config" in value &&
    value.config instanceof Object &&
    "register" in value &&
    typeof value.register === "function"
  );
}

/** A line for each problem that a schema found in given settings: path, reason, and the name that was probably meant. */
export function settingsProblems(error: z.ZodError, schema: z.ZodType, given: unknown): readonly string[] {
  const validated = { value: given, level: knownShapeOf(schema), path: [], keyName: "setting" } as const;
  return readableIssues(error.issues, validated).map(({ path, message }) =>
    path === "" ? message : `${path} ${message}`,
  );
}
