import {
  type AmbitError,
  HarnessFailed,
  ModelFailed,
  PluginBrokeContract,
  RunTimedOut,
  SandboxFailed,
} from "@ambit/core";
import { says } from "@ambit/fakes/harness";
import { describe, expect, test } from "vitest";
import { actorsToProbeAgain, type RunStage } from "../../src/run/run-state.js";
import { createWorld } from "../fakes/world.js";

const host = new SandboxFailed("no namespace");
const session = new SandboxFailed("a link stands in its way", { concerns: "session" });
const both = ["sandbox", "harness"];

describe("the actors whose evidence a failure invalidates", () => {
  test.each<[string, AmbitError, RunStage, readonly string[]]>([
    ["the host's", host, "starting", both],
    ["the host's, later", host, "started", both],
    ["a session's own", session, "starting", []],
    ["a session's own, later", session, "started", []],
    ["a start in a session that an agent had used", host, "reusing", []],
    ["an agent's there", new HarnessFailed("broken settings"), "reusing", []],
    ["an agent's", new HarnessFailed("not installed"), "starting", ["harness"]],
    ["an agent's, later", new HarnessFailed("crashed"), "started", []],
    ["a start that took too long", new RunTimedOut("late"), "starting", both],
    ["a turn that took too long", new RunTimedOut("late"), "started", []],
    ["a plugin's", new PluginBrokeContract("threw"), "started", both],
    ["a model's", new ModelFailed("quota"), "starting", []],
  ])("%s", (_what, failure, stage, expected) => {
    expect(actorsToProbeAgain(failure, stage)).toEqual(expected);
  });
});

describe("after a run that couldn't start", () => {
  const files = { harnessFiles: [{ path: "a", content: "b" }], sandboxPermission: { network: "off" } };

  test.each([
    ["a workspace's conflict leaves the evidence as it is", session, 1],
    ["a broken host is looked at again", host, 2],
  ])("%s", async (_what, failure, probes) => {
    const world = await createWorld({
      script: says("hello"),
      sandbox: { onWriteFiles: () => Promise.reject(failure) },
    });
    expect((await world.run(files)).result.failure?.code).toBe("sandbox_failed");
    await world.run({ sandboxPermission: { network: "off" } });
    expect(world.sandbox.probes).toBe(probes);
  });
});
