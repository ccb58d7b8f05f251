import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { listenerOf } from "@ambit/backend-kit/http";
import { type ModelUse, newToken, requireBearer, type Sandbox } from "@ambit/core/plugin";
import { configSchema, ModelRouteGateway } from "@ambit/model-route";
import { openHttpRelay } from "../../floors/http-relay.js";

/** A request for the client to send. */
export interface RoutedModel {
  readonly baseUrl: string;
  readonly key: string;
  /** The number of events, then events per second: `1000/1000`. */
  readonly events: string;
}

export interface ResponseTimes {
  readonly firstByteMs: number;
  readonly totalMs: number;
}

const key = "sk-bench-0123456789";

/**
 * A scripted model server on loopback, and the route to it, exposed as by a backend. The route has this thread to
 * itself, as in the runner; the server and the client have one each.
 */
export async function openRouted() {
  const closers: (() => unknown)[] = [];
  const started = (file: string) => {
    const worker = new Worker(fileURLToPath(new URL(file, import.meta.url)));
    closers.push(() => worker.terminate());
    return worker;
  };
  const [port]: number[] = await once(started("./model-server.js"), "message");
  const client = started("./model-client.js");
  const upstream = `http://127.0.0.1:${port}`;
  const use: ModelUse = {
    protocol: "anthropic",
    endpoint: upstream,
    basePath: "",
    credentials: { ANTHROPIC_API_KEY: key },
    headers: {},
    model: "bench",
    auxiliaryModels: [],
  };
  const expose: Sandbox["expose"] = async (handler) => {
    const token = newToken();
    const server = createServer(listenerOf(requireBearer(token, handler)));
    const url = await listening(server);
    closers.push(() => close(server));
    return { url, token, close: async () => undefined };
  };
  const gateway = new ModelRouteGateway(configSchema.parse({}));
  const silent = () => undefined;
  const route = await gateway.open(use, {
    sandbox: { expose },
    boundary: { network: { mode: "off", rules: [] } },
    log: { debug: silent, info: silent, warn: silent, error: silent },
    signal: new AbortController().signal,
    defer: (closer) => void closers.push(closer),
    admit: async () => ({ allowed: true }),
    begin: () => ({ used: silent, ended: silent }),
    onDecision: silent,
  });
  const relay = await openHttpRelay(upstream);
  closers.push(() => relay.close());
  const ask = async (asked: RoutedModel): Promise<ResponseTimes> => {
    client.postMessage(asked);
    const [took] = await once(client, "message");
    if (took instanceof Error) throw took;
    return took;
  };
  return {
    routed: (events: string) => ask({ ...route, events }),
    /** Through a bare relay instead of the route. */
    relayed: (events: string) => ask({ baseUrl: relay.url, key, events }),
    direct: (events: string) => ask({ baseUrl: upstream, key, events }),
    close: async () => {
      for (const closer of closers.reverse()) await closer();
    },
  };
}

async function listening(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
}

async function close(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
