import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "@ambit/core";
import { definePlugin, type Finding } from "@ambit/core/plugin";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { describeUnless } from "../../scripts/vitest/skip-without.ts";
import { takeEnvironment } from "../src/configuration/environment.js";
import { loadSettings, type Settings } from "../src/configuration/load.js";
import { EvidenceFile } from "../src/evidence-file.js";
import { startServer } from "../src/http/listen.js";
import { openAmbit } from "../src/open.js";

const silent = () => undefined;
const log = { debug: silent, info: silent, warn: silent, error: silent };
const proven: Finding = { capability: "network.deny", proven: true, how: "seen" };
const missing: Finding = {
  capability: "network.deny",
  proven: false,
  reason: "not here",
  fix: "install it",
};

let cache = "";
let probes = 0;
let finding: Finding = proven;

const plugin = definePlugin({
  name: "probed",
  api: 1,
  config: z.strictObject({}),
  register: (registrar) =>
    registrar.add("executor", {
      name: "probed",
      kind: "probed",
      site: "runner",
      claims: ["network.deny"],
      touches: () => [],
      gaps: () => [],
      issues: () => [],
      execute: async () => ({ status: "completed", output: "" }),
      dependsOn: async () => [program],
      probe: async () => {
        probes += 1;
        return [finding];
      },
    }),
});

/** What the plugin's main file holds, and what its actor depends on. */
let content = "";
let program = "";

async function command(maxAgeMs = 60_000): Promise<{ registry: Registry; file: EvidenceFile }> {
  const given = { plugins: ["probed"], probes: { maxAgeMs } };
  const settings: Settings = await loadSettings(takeEnvironment({}), {}, { folder: cache, given });
  const registry = await Registry.load(settings.plugins, async () => plugin, settings.probes, log);
  const path = join(cache, "plugin", "probed.mjs");
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, content);
  const file = await EvidenceFile.for(settings, registry, () => path);
  if (file === undefined) throw new Error("evidence isn't kept here");
  await file.restore(registry);
  return { registry, file };
}

const isProbed = (registry: Registry) => registry.evidence().length === registry.registrations.length;

describeUnless(process.platform === "linux" ? undefined : "evidence is kept on Linux only")(
  "evidence that one process keeps for the next",
  () => {
    beforeEach(async () => {
      cache = await mkdtemp(join(tmpdir(), "ambit-evidence-"));
      probes = 0;
      finding = proven;
      content = "export default 1;";
      program = "bwrap 0.8";
      vi.stubEnv("XDG_CACHE_HOME", cache);
      onTestFinished(async () => {
        vi.unstubAllEnvs();
        await rm(cache, { recursive: true });
      });
    });

    it("saves the next command its probes", async () => {
      const first = await command();
      expect(isProbed(first.registry)).toBe(false);
      await first.registry.describe();
      await first.file.keep(first.registry);
      const second = await command();
      expect(isProbed(second.registry)).toBe(true);
      expect((await second.registry.describe())[0]?.findings).toEqual([proven]);
      expect(probes).toBe(1);
    });

    it("isn't used after its maximum age", async () => {
      const first = await command(5);
      await first.registry.describe();
      await first.file.keep(first.registry);
      await new Promise((resolve) => setTimeout(resolve, 10));
      expect(isProbed((await command(5)).registry)).toBe(false);
    });

    it.each([
      ["a plugin's file was edited", () => (content = "export default 2;")],
      ["a program has another version", () => (program = "bwrap 0.9")],
    ])("isn't used if %s", async (_what, change) => {
      const first = await command();
      await first.registry.describe();
      await first.file.keep(first.registry);
      change();
      expect(isProbed((await command()).registry)).toBe(false);
    });

    it("isn't used if a file beside a plugin's main file was edited", async () => {
      const beside = join(cache, "plugin", "src", "open.mjs");
      await mkdir(join(beside, ".."), { recursive: true });
      await writeFile(beside, "deny");
      const first = await command();
      await first.registry.describe();
      await first.file.keep(first.registry);
      await writeFile(beside, "open");
      expect(isProbed((await command()).registry)).toBe(false);
    });

    it("isn't used with another configuration", async () => {
      const first = await command();
      await first.registry.describe();
      await first.file.keep(first.registry);
      expect(isProbed((await command(61_000)).registry)).toBe(false);
    });

    it.each([
      ["if it proved too little", missing, true],
      ["not if it proved every claim", proven, false],
    ])("is gathered again on demand: %s", async (_what, kept, isIncomplete) => {
      finding = kept;
      const first = await command();
      await first.registry.describe();
      expect(first.registry.isRestoredInPart).toBe(false);
      await first.file.keep(first.registry);
      const { registry } = await command();
      expect(registry.isRestoredInPart).toBe(isIncomplete);
      registry.invalidateRestored();
      expect(isProbed(registry)).toBe(!isIncomplete);
      expect(registry.isRestoredInPart).toBe(false);
    });

    it.each([true, false])(
      "a restarted server uses it: %s, as its configuration says",
      async (keepAcrossRestarts) => {
        const start = async () => {
          const configuration = { plugins: ["@ambit/executor-callback"], probes: { keepAcrossRestarts } };
          const environment = takeEnvironment({ AMBIT_PORT: "0" });
          const ambit = await openAmbit({ environment, configuration, logLevel: "silent" });
          return { ambit, server: await startServer(ambit) };
        };
        const first = await start();
        expect(isProbed(first.ambit.registry)).toBe(false);
        await first.ambit.registry.describe();
        await first.server.close();
        const { ambit, server } = await start();
        expect(isProbed(ambit.registry)).toBe(keepAcrossRestarts);
        expect(ambit.registry.evidence()).toEqual(keepAcrossRestarts ? first.ambit.registry.evidence() : []);
        await server.close();
      },
    );

    it("is writable by this user only, and isn't read otherwise", async () => {
      const { registry, file } = await command();
      await registry.describe();
      await file.keep(registry);
      const [name = ""] = await readdir(join(cache, "ambit", "evidence"));
      const path = join(cache, "ambit", "evidence", name);
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      await chmod(path, 0o666);
      expect(isProbed((await command()).registry)).toBe(false);
    });
  },
);
