import { expect, it, onTestFinished } from "vitest";
import { openCredentialBroker } from "../../src/credentials/index.js";
import { allow, openSession, openTcp } from "../proxy/session.js";
import { ask, host, tlsThrough, value } from "./brokered.js";

/** A session whose credential's host accepts connections, and never shakes hands. */
async function openStalled(handshakeMs: number) {
  let accepted = 0;
  const stalled = await openTcp(() => {
    accepted += 1;
  });
  onTestFinished(() => stalled.close());
  const hosts = [`${host}:${stalled.port}`];
  const broker = await openCredentialBroker([{ name: "TOKEN", value, as: "bearer", hosts }], { trusted: [] });
  const session = await openSession(allow([host]), { credentials: broker, limits: { handshakeMs } });
  onTestFinished(() => session.close());
  const origin = { ...stalled, requests: [] };
  const placeholder = broker.placeholders.TOKEN ?? "";
  const world = { origin, broker, session, placeholder, close: () => session.close() };
  return { world, accepted: () => accepted };
}

it("a client that leaves takes the connection to its host with it, even before the handshake", async () => {
  const { world, accepted } = await openStalled(60_000);
  const clients = await Promise.all(Array.from({ length: 20 }, () => tlsThrough(world)));
  const head = `GET / HTTP/1.1\r\nHost: ${host}:${world.origin.port}\r\n\r\n`;
  for (const client of clients) client.write(head);
  await expect.poll(accepted, { timeout: 10_000 }).toBe(20);
  for (const client of clients) client.destroy();
  await expect.poll(() => world.session.proxy.openSockets, { timeout: 10_000 }).toBe(0);
});

it("a host that doesn't shake hands in time is a failed connection", async () => {
  const { world } = await openStalled(1_000);
  expect(await ask(world, "/")).toMatchObject({
    status: 502,
    body: expect.stringContaining("closed during the TLS handshake"),
  });
});
