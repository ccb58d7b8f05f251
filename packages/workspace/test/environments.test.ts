import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { normaliseBoundary } from "@ambit/core";
import { runRequestSchema } from "@ambit/core/contract";
import type { Log, Sandbox } from "@ambit/core/plugin";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Environments, type PreparedRun } from "../src/environment/environments.js";
import { KeptSnapshots } from "../src/environment/kept.js";
import { hostSandbox } from "./host-sandbox.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "ambit-environments-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const ignore = () => undefined;
const log: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** Runs on a platform that keeps layers, and how often they looked up the commits of their sources. */
function runsOfOne(request: object) {
  const kept = new KeptSnapshots(join(folder, "kept"), {
    maxSnapshots: 10,
    maxBytes: 1_048_576,
    maxUnusedMs: 60_000,
    rebuildAfterMs: 60_000,
  });
  const environments = new Environments({
    kept,
    limits: { maxEntries: 100, maxBytes: 1_048_576 },
    setupTimeoutMs: 10_000,
  });
  const names = new Set<string>();
  const looked = { times: 0 };
  const sandbox = (): Sandbox => {
    const [workspace, home] = [join(folder, "workspace"), join(folder, "home")];
    for (const path of [workspace, home]) mkdirSync(path, { recursive: true });
    return { ...hostSandbox(workspace), home };
  };
  const run = async () => {
    const parsed = runRequestSchema.parse({ harness: "demo", messages: [], ...request });
    const asked: PreparedRun = {
      request: parsed,
      mayKeep: true,
      backend: "one",
      layers: {
        kept: {
          system: async () => "one",
          supports: () => true,
          has: async (name) => names.has(name),
        },
        open: async (name) => ({ ...sandbox(), keepAsLayer: async () => void names.add(name) }),
        log,
      },
      own: {
        subject: "environment",
        backend: "run",
        boundary: normaliseBoundary(parsed.sandboxPermission).boundary,
        secrets: [],
      },
      commits: async () => {
        looked.times += 1;
        return new Map();
      },
      signal: new AbortController().signal,
      sandbox: sandbox(),
      openSetup: async () => sandbox(),
      fill: async () => [],
      report: ignore,
      warn: ignore,
    };
    const begun = await environments.begin(asked);
    const { environment } = begun?.prepared ?? (await environments.prepare(asked));
    return { layer: begun?.layer, from: environment.from };
  };
  return { run, looked, names };
}

it("looks the commits of its sources up once for each run, whether it begins with a layer or not", async () => {
  const { run, looked, names } = runsOfOne({ environment: { setup: ["printf prepared > file"] } });
  expect(await run()).toEqual({ layer: undefined, from: "built" });
  expect(looked.times).toBe(1);
  const [layer] = names;
  expect(layer).toMatch(/^[0-9a-f]{64}$/);
  rmSync(join(folder, "workspace"), { recursive: true });
  expect(await run()).toEqual({ layer, from: "cache" });
  expect(looked.times).toBe(2);
});
