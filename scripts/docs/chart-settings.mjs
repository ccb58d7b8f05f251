/**
 * Writes the settings of sandbox-kubernetes into the chart's schema of values, from the plugin's own schema. Run after a
 * build: node scripts/docs/chart-settings.mjs
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { configSchema } from "../../plugins/sandbox-kubernetes/dist/index.js";
import { root } from "../setup.mjs";

export const page = join(root, "deploy/chart/values.schema.json");

/** Those that are values of the chart themselves, or that a runner in a pod doesn't have. */
const elsewhere = [
  ...[
    "namespace",
    "image",
    "pull",
    "pullSecrets",
    "nodeSelector",
    "tolerations",
    "runtimeClass",
    "hostUsers",
  ],
  ...["name", "deployment", "kubeconfig", "context", "dataFolder"],
];

/** @returns {object} what `sandboxes.settings` may hold. */
export function settingsSchema() {
  const { properties = {} } = configSchema.toJSONSchema({ io: "input", target: "draft-7" });
  const own = Object.entries(properties).filter(([name]) => !elsewhere.includes(name));
  return { type: "object", additionalProperties: false, properties: Object.fromEntries(own) };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const schema = JSON.parse(readFileSync(page, "utf8"));
  schema.properties.sandboxes.properties.settings = settingsSchema();
  writeFileSync(page, `${JSON.stringify(schema, null, 2)}\n`);
}
