import type { SandboxFailed } from "@ambit/core/plugin";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { watch } from "../src/open/watch.js";
import { ServiceFailure } from "../src/platform/failure.js";
import type { Machine, MachineView, SandboxOrder } from "../src/platform/service.js";
import { logged } from "./support/loopback.js";

const order: SandboxOrder = {
  name: "n",
  source: {},
  resources: {},
  network: { networkBlockAll: true },
  labels: {},
  env: {},
  secrets: {},
  autoStopMinutes: 3,
  ttlMinutes: 60,
};
const fine: MachineView = {
  state: "started",
  errorReason: undefined,
  labels: {},
  env: {},
  isPublic: false,
  networkBlockAll: true,
  networkAllowList: [],
  domainAllowList: [],
  cpu: 1,
  memory: 1,
  disk: 3,
  autoStopMinutes: 3,
  autoDeleteMinutes: 0,
  hasTimeToLive: true,
  supervisor: "daemon",
};

/** A machine with scripted responses that counts requests. */
function machineThat(refresh: () => Promise<MachineView>) {
  const counts = { touches: 0, looks: 0 };
  const unused = () => Promise.reject(new Error("not for this test"));
  const machine: Machine = {
    id: "id",
    name: "n",
    labels: {},
    toolboxUrl: "http://127.0.0.1:9",
    refresh: () => {
      counts.looks += 1;
      return refresh();
    },
    touch: async () => {
      counts.touches += 1;
    },
    waitUntilStarted: unused,
    setLabels: unused,
    setNetwork: unused,
    execute: unused,
    startSession: unused,
    startInSession: unused,
    input: unused,
    endSession: unused,
    upload: unused,
    makeSnapshot: unused,
    delete: unused,
  };
  return { machine, counts };
}

describe("an open sandbox", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }));
  afterEach(() => void vi.useRealTimers());

  const watching = (refresh: () => Promise<MachineView>) => {
    const { machine, counts } = machineThat(refresh);
    const failures: SandboxFailed[] = [];
    const { log, lines } = logged();
    const stop = watch({
      machine,
      order,
      everyMs: 20_000,
      log,
      onFailure: (failure) => failures.push(failure),
    });
    return { counts, failures, lines, stop };
  };

  it("is kept awake three times within the platform's limit, and not more often", async () => {
    const { counts, failures, stop } = watching(async () => fine);
    await vi.advanceTimersByTimeAsync(9 * 60_000);
    expect(counts.touches).toBeGreaterThanOrEqual(9);
    expect(counts.touches).toBeLessThanOrEqual(14);
    expect(counts.looks).toBeGreaterThanOrEqual(26);
    expect(failures).toEqual([]);
    stop();
    const { looks } = counts;
    await vi.advanceTimersByTimeAsync(600_000);
    expect(counts.looks).toBe(looks);
  });

  it.each<[string, () => Promise<MachineView>, RegExp]>([
    ["stopped", async () => ({ ...fine, state: "stopped" }), /is stopped and was open/],
    ["failed", async () => ({ ...fine, state: "error", errorReason: "no disk" }), /is error \(no disk\)/],
    [
      "was opened up",
      async () => ({ ...fine, networkBlockAll: false }),
      /limits were changed: networkBlockAll/,
    ],
    [
      "was deleted",
      () => Promise.reject(new ServiceFailure("missing", "not found", 404)),
      /was deleted while it was open/,
    ],
    [
      "lost its key",
      () => Promise.reject(new ServiceFailure("unauthorized", "no", 401)),
      /key is wrong or has expired/,
    ],
  ])("fails once when it %s", async (_what, refresh, text) => {
    const { counts, failures } = watching(refresh);
    await vi.advanceTimersByTimeAsync(200_000);
    expect(failures.map(({ message }) => message)).toEqual([expect.stringMatching(text)]);
    expect(counts.looks).toBe(1);
  });

  it("survives failures of the platform, and logs them", async () => {
    const { failures, lines } = watching(() =>
      Promise.reject(new ServiceFailure("unavailable", "down", 503)),
    );
    await vi.advanceTimersByTimeAsync(60_000);
    expect(failures).toEqual([]);
    expect(lines.join()).toContain("couldn't be read");
  });
});
