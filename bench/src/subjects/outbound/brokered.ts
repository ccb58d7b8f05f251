import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { makeAuthority, openCredentialBroker } from "@ambit/egress/credentials";
import { openEgressProxy } from "@ambit/egress/proxy";
import { openTlsRelay } from "../../floors/tls-relay.js";

const host = "bench.test";
const value = "a-credential-of-the-bench-0123456789";

/** A request for the client to send. */
export interface Task {
  /** `relayed`: through a bare relay instead of the proxy. */
  readonly way: "direct" | "through" | "relayed";
  /** `/<bytes>`, or `/<bytes>/<bytes a second>`. */
  readonly path: string;
  /** Over the connection of the previous such task. */
  readonly isKept: boolean;
}

export interface Fetched {
  readonly firstByteMs: number;
  readonly totalMs: number;
}

export interface ClientSetting {
  readonly host: string;
  readonly port: number;
  readonly ways: Readonly<Record<Task["way"], Way>>;
}

export interface Way {
  /** The unix socket of a proxy. Absent: no proxy. */
  readonly proxy?: string;
  readonly authority: string;
  readonly credential: string;
}

/** One server, reached over TLS directly and through a session's proxy that adds a credential. */
export interface Brokered {
  fetch(task: Task): Promise<Fetched>;
  close(): Promise<void>;
}

/**
 * The proxy has this thread to itself, as in the runner; the server and the client have one each.
 *
 * @throws when a thread doesn't start.
 */
export async function openBrokered(): Promise<Brokered> {
  const folder = mkdtempSync(join(tmpdir(), "ambit-bench-broker-"));
  const authority = await makeAuthority();
  const { key, certificate } = await authority.certificateFor(host);
  const server = new Worker(fileURLToPath(new URL("./tls-server.js", import.meta.url)), {
    workerData: { key, certificate, authorization: `Bearer ${value}` },
  });
  const [port]: number[] = await once(server, "message");
  if (port === undefined) throw new Error("the server has no port");
  const hosts = [`${host}:${port}`];
  const broker = await openCredentialBroker([{ name: "KEY", value, hosts, as: "bearer" }], {
    trusted: [authority.certificate],
  });
  const path = join(folder, "proxy.sock");
  const proxy = await openEgressProxy({
    listen: { path },
    policy: {
      mode: "allowlist",
      rules: [
        { kind: "host", name: host, subdomains: false },
        { kind: "range", cidr: "127.0.0.1/32", family: 4 },
      ],
    },
    onDecision: () => {},
    lookup: async () => ["127.0.0.1"],
    credentials: broker,
  });
  const relay = join(folder, "relay.sock");
  const closeRelay = await openTlsRelay({
    path: relay,
    secureContext: await authority.contextFor(host),
    server: { port, host, authority: authority.certificate },
  });
  const direct: Way = { authority: authority.certificate, credential: value };
  const setting: ClientSetting = {
    ...{ host, port },
    ways: {
      direct,
      through: { proxy: path, authority: broker.authority, credential: broker.placeholders.KEY ?? "" },
      relayed: { ...direct, proxy: relay },
    },
  };
  const client = new Worker(fileURLToPath(new URL("./brokered-client.js", import.meta.url)), {
    workerData: setting,
  });
  return {
    fetch: async (task) => {
      client.postMessage(task);
      const [fetched] = await once(client, "message");
      if (fetched instanceof Error) throw fetched;
      return fetched;
    },
    close: async () => {
      await client.terminate();
      await proxy.close();
      await closeRelay();
      await server.terminate();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
