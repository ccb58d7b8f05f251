import { createSecretKey } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { Sealing } from "../src/sealing.js";
import type { Delivery, DeliveryOutcome } from "../src/store.js";
import { Deliveries, type DeliveriesOptions } from "../src/webhooks.js";

it("frees the place of a message whose sender never says what became of it", async () => {
  const sealing = new Sealing(createSecretKey("k".repeat(32), "utf8"));
  const waiting: Delivery[] = Array.from({ length: 40 }, (_, index) => ({
    id: `msg_${index}`,
    runId: "r",
    project: undefined,
    host: `host-${index}`,
    event: "run.finished",
    target: sealing.seal("r", "http://127.0.0.1:1/"),
    body: "{}",
    state: "pending",
    attempts: 1,
    earlierAttempts: 0,
    status: undefined,
    error: undefined,
    createdAt: 0,
    dueAt: 0,
  }));
  const settled: (readonly [string, DeliveryOutcome])[] = [];
  const store: DeliveriesOptions["store"] = {
    takeDeliveries: async () => waiting.splice(0, 1),
    settleDelivery: async (id, _attempt, outcome) => {
      settled.push([id, outcome]);
    },
    redeliver: async () => undefined,
  };
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const sender = { isConfigured: true, attempts: 8, retryMs: 1, timeoutMs: 1 };
  const deliveries = new Deliveries({
    store,
    sealing,
    log,
    onPosted: () => {},
    // All places but those of the others are taken by senders that hang.
    sender: {
      ...sender,
      send: ({ id }) =>
        Number(id.slice(4)) < 32 ? new Promise(() => {}) : Promise.resolve({ delivered: true }),
    },
  });
  onTestFinished(() => deliveries.close());
  deliveries.start();
  await expect.poll(() => settled.length, { timeout: 10_000 }).toBe(40);
  expect(settled.filter(([, { state }]) => state === "delivered")).toHaveLength(8);
});
