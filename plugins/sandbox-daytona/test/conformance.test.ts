import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLoopbackDaytona, unavailableReason } from "@ambit/daytona-loopback";
import { describeSandboxBackend } from "@ambit/testkit/vitest";
import { afterAll, describe, it } from "vitest";
import { z } from "zod";
import { configSchema, DaytonaSandbox } from "../src/index.js";
import { whatIsLeft } from "./support/loopback.js";
import { loopbackOptions, settingsFor, world } from "./support/settings.js";

/** Why an attack breaks no promise here, by its id. Also read by scripts/docs/backends.mjs. */
const exempt = z
  .record(z.string(), z.string())
  .parse(JSON.parse(readFileSync(new URL("support/exempt.json", import.meta.url), "utf8")));

// On a loopback Daytona this proves the plugin's part, not the platform's.
const reason = unavailableReason();
if (reason !== undefined) {
  describe("the kit, on a loopback Daytona", () => {
    it("isn't run", (context) => context.skip(`host: ${reason}`));
  });
} else {
  const daytona = await startLoopbackDaytona(loopbackOptions());
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-kit-"));
  afterAll(async () => {
    await daytona.close();
    await rm(dataFolder, { recursive: true, force: true });
  });
  const settings = settingsFor(daytona);
  // Lists aren't proven here, and the kit looks that they are refused: its decoys for them take ports, or names and
  // ranges at once, which Daytona can't be asked for. `open.test.ts` tries them at hosts of the loopback's network.
  const nobody = { address: "10.99.0.77:80", name: "nobody.example.test:80" };
  // A sandbox is opened for each of a hundred attacks. Without limits, a connection must succeed in that time on a busy machine too.
  // There it may need several tries.
  const canary = { ...settings.canary, ...nobody, attemptMs: 400, settleMs: 30_000 };
  /** As on a host of its own: with a separate data folder. */
  const settingsOn = (host: string) => ({ ...settings, dataFolder: join(dataFolder, host), canary });
  const configOn = (host: string) => configSchema.parse(settingsOn(host));
  const runnerModule = new URL("support/backend.mjs", import.meta.url);
  runnerModule.searchParams.set("config", JSON.stringify(settingsOn("killed")));
  const takeover = { makeOther: () => new DaytonaSandbox(configOn("other")), runnerModule };
  const remains = async () => whatIsLeft(daytona).map(({ name, state }) => `${name}: ${state}`);
  describeSandboxBackend(() => new DaytonaSandbox(configOn("first")), {
    remains,
    exempt,
    takeover,
    // Sandboxes reach neither this host nor each other.
    beyond: [{ host: world.address.address, port: 80 }],
  });
}
