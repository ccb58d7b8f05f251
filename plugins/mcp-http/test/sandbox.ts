import { once } from "node:events";
import {
  type DeliveryScope,
  type FetchHandler,
  type Log,
  newToken,
  requireBearer,
  type Sandbox,
} from "@ambit/core/plugin";
import { serve } from "@hono/node-server";
import { onTestFinished } from "vitest";

export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface TestScope extends DeliveryScope {
  readonly logged: readonly LogLine[];
  /** Runs the deferred functions in reverse order, like the end of a run. */
  close(): Promise<void>;
}

/** A run's scope with a sandbox that only serves, on loopback. `careless`: a backend that doesn't check the token. */
export function testScope({ careless = false } = {}): TestScope {
  const logged: LogLine[] = [];
  const deferred: (() => void | Promise<void>)[] = [];
  const level = (name: LogLine["level"]) => (fields: LogLine["fields"]) =>
    void logged.push({ level: name, fields });
  const log: Log = { debug: level("debug"), info: level("info"), warn: level("warn"), error: level("error") };
  const never = () => Promise.reject(new Error("a delivery only exposes"));
  const sandbox: Sandbox = {
    workspace: "/workspace",
    home: "/home",
    confinement: "unconfined",
    evidence: {},
    spawn: never,
    writeFiles: never,
    readFile: never,
    close: never,
    expose: (handler) => expose(handler, careless),
  };
  const close = async () => {
    for (const step of deferred.splice(0).reverse()) await step();
  };
  onTestFinished(close);
  return {
    signal: new AbortController().signal,
    defer: (step) => void deferred.push(step),
    sandbox,
    log,
    logged,
    close,
  };
}

async function expose(handler: FetchHandler, careless: boolean) {
  const token = newToken();
  const fetch = careless ? handler : requireBearer(token, handler);
  const server = serve({ fetch, port: 0, hostname: "127.0.0.1" });
  await once(server, "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new TypeError("the sandbox has no port");
  const close = async () => {
    if (!server.listening) return;
    if ("closeAllConnections" in server) server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${address.port}`, token, close };
}
