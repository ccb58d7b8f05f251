import { chmod, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BoundaryRefused, Registry } from "@ambit/core";
import { definePlugin, type Finding } from "@ambit/core/plugin";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { z } from "zod";
import { takeEnvironment } from "../src/configuration/environment.js";
import { loadSettings, type Settings } from "../src/configuration/load.js";
import { EvidenceFile } from "../src/evidence-file.js";

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
      probe: async () => {
        probes += 1;
        return [finding];
      },
    }),
});

async function command(maxAgeMs = 60_000): Promise<{ registry: Registry; file: EvidenceFile }> {
  const given = { plugins: ["probed"], probes: { maxAgeMs } };
  const settings: Settings = await loadSettings(takeEnvironment({}), {}, { folder: cache, given });
  const registry = await Registry.load(settings.plugins, async () => plugin, settings.probes, log);
  const file = await EvidenceFile.for(settings);
  if (file === undefined) throw new Error("evidence isn't kept here");
  await file.restore(registry);
  return { registry, file };
}

describe.runIf(process.platform === "linux")("evidence that one command keeps for the next", () => {
  beforeEach(async () => {
    cache = await mkdtemp(join(tmpdir(), "ambit-evidence-"));
    probes = 0;
    finding = proven;
    vi.stubEnv("XDG_CACHE_HOME", cache);
    onTestFinished(async () => {
      vi.unstubAllEnvs();
      await rm(cache, { recursive: true });
    });
  });

  it("saves the next command its probes", async () => {
    const first = await command();
    expect(first.registry.isProbed).toBe(false);
    await first.registry.describe();
    await first.file.keep(first.registry);
    const second = await command();
    expect(second.registry.isProbed).toBe(true);
    expect((await second.registry.describe())[0]?.findings).toEqual([proven]);
    expect(probes).toBe(1);
  });

  it("isn't used after its maximum age", async () => {
    const first = await command(5);
    await first.registry.describe();
    await first.file.keep(first.registry);
    await new Promise((resolve) => setTimeout(resolve, 10));
    expect((await command(5)).registry.isProbed).toBe(false);
  });

  it("isn't used with another configuration", async () => {
    const first = await command();
    await first.registry.describe();
    await first.file.keep(first.registry);
    expect((await command(61_000)).registry.isProbed).toBe(false);
  });

  it("is gathered again if it refuses a boundary", async () => {
    finding = missing;
    const first = await command();
    await first.registry.describe();
    await first.file.keep(first.registry);

    finding = proven;
    const { registry, file } = await command();
    const plan = async () => {
      const [actor] = await registry.describe();
      if (actor?.findings[0]?.proven !== true) throw new BoundaryRefused([]);
      return "planned";
    };
    expect(await file.plan(registry, plan)).toBe("planned");
    expect(probes).toBe(2);
  });

  it("is writable by this user only, and isn't read otherwise", async () => {
    const { registry, file } = await command();
    await registry.describe();
    await file.keep(registry);
    const [name = ""] = await readdir(join(cache, "ambit", "evidence"));
    const path = join(cache, "ambit", "evidence", name);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await chmod(path, 0o666);
    expect((await command()).registry.isProbed).toBe(false);
  });
});
