import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { domains, type SandboxBackend } from "@ambit/core/plugin";
import { z } from "zod";
import { configSchema, type LocalConfig } from "../../dist/config.js";
import { type RemovableMechanism, removableMechanisms, WeakenedSandboxes } from "./jails/index.ts";

/** Parameters of a separate runner, in the query of this module's address. */
const orderSchema = z.object({ config: configSchema, without: z.array(z.enum(removableMechanisms)) });

/** This module as one that makes weakened jails, for a runner in a separate process. */
export function runnerModule(config: LocalConfig, without: readonly RemovableMechanism[]): URL {
  const url = new URL("runner.ts", import.meta.url);
  url.searchParams.set("order", JSON.stringify({ config, without }));
  return url;
}

const listsNothing = { mode: "off", rules: [] } as const;

export default function weakenedBackend(): SandboxBackend {
  const order: unknown = JSON.parse(new URL(import.meta.url).searchParams.get("order") ?? "null");
  const { config, without } = orderSchema.parse(order);
  // Removed with the kit's temporary folder: this runner may be killed, and none starts after it.
  const dataFolder = mkdtempSync(join(tmpdir(), "runner-"));
  chmodSync(dataFolder, 0o755);
  const weakened = new WeakenedSandboxes({ config, dataFolder });
  return {
    name: "local, weakened",
    site: "sandbox",
    claims: [],
    touches: () => domains,
    gaps: () => [],
    probe: () => Promise.resolve([]),
    open: (spec) => weakened.open(spec, without, { folders: [], environment: {} }, listsNothing),
  };
}
