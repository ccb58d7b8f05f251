// needs: openssl
import { setTimeout as after } from "node:timers/promises";
import { vi } from "vitest";
import type { CredentialBroker } from "../../src/credentials/index.js";
import type * as proxied from "../proxy/session.js";
import { openRemoteSession } from "./remote-session.js";

/** For records to arrive that a gate has sent, in milliseconds. */
const settleMs = 40;

/** The proxy's own tests, with a gate and a relay in processes of their own in place of a proxy in this one. */
vi.mock("../proxy/session.js", async (importOriginal) => {
  const original = await importOriginal<typeof proxied>();
  const settled =
    <Arguments extends readonly unknown[], Result>(call: (...given: Arguments) => Promise<Result>) =>
    async (...given: Arguments) => {
      const result = await call(...given);
      await after(settleMs);
      return result;
    };
  return {
    ...original,
    itHere: () => undefined,
    describeHere: () => undefined,
    exchange: settled(original.exchange),
    gather: settled(original.gather),
    connectThrough: settled(original.connectThrough),
    socksThrough: settled(original.socksThrough),
    openSession: async (
      policy: Parameters<typeof original.openSession>[0],
      { names = {}, lookup, credentials, ...more }: Parameters<typeof original.openSession>[1] = {},
    ) => {
      if (Object.keys(more).length > 0) throw new Error(`a gate has no ${Object.keys(more).join(", ")}`);
      const session = await openRemoteSession(policy, {
        ...(credentials === undefined ? {} : { credentials: credentials as CredentialBroker }),
        lookup: lookup ?? (async (name) => names[name] ?? [original.INTERNET]),
      });
      return { ...session, decisions: session.reports };
    },
  };
});

await import("../proxy/clients.test.js");
await import("../proxy/http-messages.test.js");
await import("../proxy/http.test.js");
await import("../proxy/socks.test.js");
await import("../proxy/tunnel.test.js");
await import("../credentials/broker.test.js");
await import("../credentials/refreshed-requests.test.js");
