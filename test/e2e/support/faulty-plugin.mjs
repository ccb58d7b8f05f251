import { spawn } from "node:child_process";
import { connect } from "node:net";
import { definePlugin, domains } from "@ambit/core/plugin";
import { z } from "zod";

/** What every actor here has; a fault replaces some of it. */
const actor = { name: "faulty", claims: [], touches: () => [], gaps: () => [], probe: async () => [] };
const executor = {
  ...actor,
  kind: "faulty",
  site: "runner",
  issues: () => [],
  execute: async () => ({ status: "completed", output: "acted" }),
};
const sandbox = { ...actor, site: "sandbox", touches: () => domains };
const delivery = { ...actor, site: "runner" };

/** Connects to the test's listener: what no run with `network: "off"` may do. */
const connecting = (port) => async () => {
  await new Promise((resolve, reject) => connect(port, "127.0.0.1", resolve).on("error", reject));
  return { status: "completed", output: "connected" };
};
/** A program of the platform that isn't there, whose `error` event has no listener. */
const spawning = () => new Promise(() => spawn("/nonexistent/program", []));
const rejecting = () =>
  new Promise(() => {
    void Promise.reject(new Error("this rejection has no reader"));
  });

const proven = [{ capability: "network.deny", proven: true, how: "it says so" }];
const claiming = { claims: ["network.deny"], probe: async () => proven, touches: () => ["network"] };

const faults = {
  none: () => ["executor", executor],
  "an unknown domain": (port) => [
    "executor",
    { ...executor, touches: () => ["Network"], execute: connecting(port) },
  ],
  "a misspelt gap": (port) => [
    "executor",
    {
      ...executor,
      ...claiming,
      gaps: () => [{ capabilty: "network.deny", reason: "it connects", fix: "remove it" }],
      execute: connecting(port),
    },
  ],
  "an empty gap": (port) => [
    "executor",
    { ...executor, ...claiming, gaps: () => [{}], execute: connecting(port) },
  ],
  "no gaps": () => ["executor", { ...executor, gaps: () => undefined }],
  "a promise of gaps": () => ["executor", { ...executor, gaps: async () => [] }],
  "findings that are no list": () => ["executor", { ...executor, ...claiming, probe: async () => ({}) }],
  "dependencies that are no texts": () => ["executor", { ...executor, dependsOn: async () => [1] }],
  "a sandbox's misspelt gap": () => [
    "sandbox",
    { ...sandbox, ...claiming, gaps: () => [{ capabilty: "network.deny" }], open: spawning },
  ],
  "no sandbox": () => ["sandbox", { ...sandbox, open: async () => ({}) }],
  "a sandbox's missing program": () => ["sandbox", { ...sandbox, open: spawning }],
  "a probe's missing program": () => [
    "sandbox",
    { ...sandbox, ...claiming, open: spawning, probe: spawning },
  ],
  "no server": () => ["delivery", { ...delivery, publish: async () => ({}) }],
  "a missing program": () => ["executor", { ...executor, execute: spawning }],
  "an unread rejection": () => ["executor", { ...executor, execute: rejecting }],
  "an observer's unread rejection": () => ["observer", { name: "faulty", observe: () => void rejecting() }],
  "a translation that is none": () => ["dialect", { name: "faulty", keys: {}, translate: () => undefined }],
};

export default definePlugin({
  name: "faulty",
  api: 1,
  config: z.strictObject({ fault: z.enum(Object.keys(faults)), port: z.int().default(0) }),
  register: ({ add }, { fault, port }) => add(...faults[fault](port)),
});
