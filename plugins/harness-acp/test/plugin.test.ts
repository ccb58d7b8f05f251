import type { Harness, Registrar } from "@ambit/core/plugin";
import { recordingLog } from "@ambit/fakes/log";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import plugin from "../src/index.js";

describe("the plugin", () => {
  function harnessesOf(config: unknown): Harness[] {
    const harnesses: Harness[] = [];
    const registrar: Registrar = {
      log: recordingLog(),
      hasTenants: false,
      secret: () => {},
      add: (_, actor) => {
        if ("maxToolCallMs" in actor) harnesses.push(actor);
      },
    };
    plugin.register(registrar, plugin.config.parse(config));
    return harnesses;
  }

  it("offers every supported agent unless configured otherwise", () => {
    expect(harnessesOf({}).map(({ id }) => id)).toEqual([
      "demo",
      "claude",
      "codex",
      "gemini",
      "opencode",
      "pi",
      "qwen",
    ]);
    expect(harnessesOf({ profiles: ["codex"] }).map(({ id }) => id)).toEqual(["codex"]);
  });

  it.each([
    { config: { profiles: ["clippy"] } },
    { config: { profiles: [] } },
    { config: { overrides: { demo: { command: "not/absolute" } } } },
    { config: { overrides: { clippy: {} } } },
    { config: { limits: { cancelMs: 0 } } },
    { config: { unknown: 1 } },
  ])("refuses $config", ({ config }) => {
    expect(plugin.config.safeParse(config).success).toBe(false);
  });

  it("publishes its configuration as JSON Schema", () => {
    const schema = z.toJSONSchema(plugin.config, { io: "input" });
    expect(schema).toMatchObject({ type: "object", additionalProperties: false });
  });
});
