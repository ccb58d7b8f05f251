import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import sqlite from "@ambit/store-sqlite";
import { onTestFinished } from "vitest";
import type { ConfigurationInput } from "../../src/configuration/schema.js";
import { type Script, scriptedAgent } from "./scripted-agent.js";
import { serveScript } from "./server.js";

type PluginEntry = NonNullable<ConfigurationInput["plugins"]>[number];

/** A folder for a test's database, removed with the test. */
export async function databaseFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-stored-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "runs.sqlite");
}

/** A server with a store, on a database that may be another server's too. */
export async function serveStored(
  script: Script,
  options: {
    readonly file?: string;
    readonly configuration?: ConfigurationInput;
    readonly port?: string;
    /** In place of a SQLite file. */
    readonly store?: PluginEntry;
  } = {},
) {
  const file = options.file ?? (await databaseFile());
  const plugins = [scriptedAgent(script), options.store ?? { use: sqlite, config: { file } }];
  const served = await serveScript(script, {
    configuration: { server: { drainMs: 100 }, ...options.configuration, plugins },
    ...(options.port === undefined ? {} : { port: options.port }),
  });
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${served.url}${path}`, { headers });
  const remove = (path: string) => fetch(`${served.url}${path}`, { method: "DELETE" });
  return { ...served, file, get, remove };
}

/** Where a server keeps its runs. */
export const places = ["in a store", "in memory"] as const;

/** A server that keeps its runs there. Both serve them alike. */
export async function serveIn(
  place: (typeof places)[number],
  script: Script,
  options: { readonly configuration?: ConfigurationInput } = {},
) {
  if (place === "in a store") return serveStored(script, options);
  const served = await serveScript(script, {
    configuration: { server: { drainMs: 100 }, ...options.configuration, plugins: [scriptedAgent(script)] },
  });
  const get = (path: string, headers: Record<string, string> = {}) =>
    fetch(`${served.url}${path}`, { headers });
  const remove = (path: string) => fetch(`${served.url}${path}`, { method: "DELETE" });
  return { ...served, get, remove };
}

/** An agent that says one step after the other, each when the test lets it, and then ends its turn. */
export function counting(steps = 3) {
  const agent = { begun: 0, aborted: 0, allowed: 0 };
  let wake = () => {};
  const script: Script = async function* ({ signal }) {
    agent.begun += 1;
    signal.addEventListener("abort", () => wake(), { once: true });
    for (let step = 1; step <= steps; step += 1) {
      while (agent.allowed === 0 && !signal.aborted) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      if (signal.aborted) {
        agent.aborted += 1;
        break;
      }
      agent.allowed -= 1;
      yield { type: "message", text: `step ${step}` };
    }
    yield { type: "done", stopReason: "end_turn" };
  };
  const proceed = (by = 1) => {
    agent.allowed += by;
    wake();
  };
  return { agent, script, proceed };
}
