import { labelsOf } from "@ambit/backend-kit";
import { describe, expect, it } from "vitest";
import { createMachine } from "../src/open/create.js";
import { RemoteMachine } from "../src/open/remote-machine.js";
import { ServiceFailure } from "../src/platform/failure.js";
import type { Machine, SandboxOrder, Service } from "../src/platform/service.js";
import { logged } from "./support/loopback.js";

const owner = { deployment: "d", replica: "a-b", session: "s", expires: 1_795_000_000 };
const order: SandboxOrder = {
  name: "n",
  source: {},
  resources: {},
  network: {},
  labels: labelsOf(owner),
  env: {},
  secrets: {},
  autoStopMinutes: 3,
  ttlMinutes: 60,
};
const changing = () => new ServiceFailure("conflict", "Sandbox state change in progress", 409);
const removal = { everyMs: 10, limitMs: 5_000 };
const unused = () => Promise.reject(new Error("not for this test"));

/** One sandbox that may be made, and refuses deletion a given number of times. */
function platform({ refusals = 0, madeAfterMs = 0 }) {
  let isThere = false;
  let deletes = 0;
  const machine: Machine = {
    id: "id",
    name: "n",
    labels: order.labels,
    toolboxUrl: "http://127.0.0.1:9",
    delete: async () => {
      deletes += 1;
      if (deletes <= refusals) throw changing();
      isThere = false;
    },
    refresh: unused,
    touch: unused,
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
  };
  const make = () => {
    isThere = true;
  };
  const service: Service = {
    // It is made sooner or later, and never starts.
    create: () => {
      if (madeAfterMs > 0) setTimeout(make, madeAfterMs);
      else make();
      return new Promise((_, reject) =>
        setTimeout(() => reject(new ServiceFailure("timeout", "took too long")), 200),
      );
    },
    get: async () => {
      if (!isThere) throw new ServiceFailure("missing", "not found", 404);
      return machine;
    },
    list: unused as never,
    createSecret: unused,
    listSecrets: unused as never,
    deleteSecret: unused,
    snapshot: unused,
    listSnapshots: unused as never,
    deleteSnapshot: unused,
  };
  return { service, machine, make, isThere: () => isThere, deletes: () => deletes };
}

const limits = { createTimeoutMs: 100, requestTimeoutMs: 100, removal };

describe("a sandbox that changes its state", () => {
  it("is deleted by retries after its creation was aborted", async () => {
    const { service, isThere, deletes } = platform({ refusals: 5 });
    const abort = new AbortController();
    const making = createMachine(service, order, limits, abort.signal, logged().log);
    setTimeout(() => abort.abort(new Error("given up")), 20);
    await expect(making).rejects.toThrow("given up");
    await expect.poll(isThere).toBe(false);
    expect(deletes()).toBe(6);
  });

  it("is deleted even if it is made after its creation was abandoned", async () => {
    const { service, isThere, deletes } = platform({ madeAfterMs: 150 });
    const abort = new AbortController();
    const making = createMachine(service, order, limits, abort.signal, logged().log);
    setTimeout(() => abort.abort(new Error("given up")), 20);
    await expect(making).rejects.toThrow("given up");
    await expect.poll(deletes).toBe(1);
    expect(isThere()).toBe(false);
  });

  it("is logged once if it can't be deleted", async () => {
    const { service } = platform({ refusals: 1_000 });
    const { log, lines } = logged();
    const making = createMachine(
      service,
      order,
      { ...limits, removal: { everyMs: 10, limitMs: 100 } },
      new AbortController().signal,
      log,
    );
    await expect(making).rejects.toThrow(
      /creating a sandbox failed .*; anything created as n is removed as soon as possible/,
    );
    await expect.poll(() => lines).toHaveLength(1);
    expect(lines[0]).toMatch(/couldn't be removed; the reaper tries again.*"n".*state change in progress/);
  });

  it("is deleted in the background when its run is over", async () => {
    const { machine, make, isThere } = platform({ refusals: 3 });
    make();
    let destroyed = 0;
    const remote = new RemoteMachine({
      machine,
      apiKey: "key",
      requestTimeoutMs: 1_100,
      log: logged().log,
      removal,
      onDestroyed: async () => {
        destroyed += 1;
      },
    });
    await remote.destroy();
    expect(destroyed).toBe(1);
    await expect.poll(isThere).toBe(false);
  });
});
