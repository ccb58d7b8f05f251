import { chmodSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { domains, type SandboxBackend } from "@ambit/core/plugin";
import { z } from "zod";
import { LocalSandbox } from "../backend.js";
import { configSchema } from "../config.js";
import { type RemovableMechanism, removableMechanisms, WeakenedSandboxes } from "./weakened/index.js";

/** Parameters of a separate runner, in the query of this module's address. */
const orderSchema = z.object({
  config: configSchema,
  /** Empty for the unchanged sandbox. */
  without: z.array(z.enum(removableMechanisms)),
});

const here = new URL("../../dist/testing/runner.js", import.meta.url);

/** This module as one that makes the local sandbox, for a runner in a separate process. */
export function runnerModule(
  config: z.output<typeof configSchema>,
  without: readonly RemovableMechanism[],
): URL {
  const url = new URL(here);
  url.searchParams.set("order", JSON.stringify({ config, without }));
  return url;
}

const listsNothing = { mode: "off", rules: [] } as const;

export default function localBackend(): SandboxBackend {
  const order: unknown = JSON.parse(new URL(import.meta.url).searchParams.get("order") ?? "null");
  const { config, without } = orderSchema.parse(order);
  // Removed with the kit's temporary folder: this runner may be killed, and none starts after it.
  const dataFolder = mkdtempSync(join(tmpdir(), "runner-"));
  chmodSync(dataFolder, 0o755);
  const backend = new LocalSandbox({ ...config, dataFolder });
  if (without.length === 0) return backend;
  const weakened = WeakenedSandboxes.of(backend);
  if (weakened === undefined) throw new Error("the local sandbox isn't itself");
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
