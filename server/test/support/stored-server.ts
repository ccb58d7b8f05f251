import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import storePostgres from "@ambit/store-postgres";
import sqlite from "@ambit/store-sqlite";
import { type Postgres, postgresIsMissing, startPostgres } from "@ambit/test-postgres";
import { afterAll, beforeAll, beforeEach, describe, onTestFinished } from "vitest";
import type { ConfigurationInput } from "../../src/configuration/schema.js";
import { type Script, scriptedAgent } from "./scripted-agent.js";
import { serveScript } from "./server.js";

type PluginEntry = NonNullable<ConfigurationInput["plugins"]>[number];

interface Settings {
  readonly configuration?: ConfigurationInput;
  readonly port?: string;
  /** The operator's. */
  readonly token?: string;
}

/** A folder for a test's database, removed with the test. */
export async function databaseFile(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-stored-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return join(folder, "runs.sqlite");
}

/** A server with a store, on a database that may be another server's too. */
export async function serveStored(
  script: Script,
  options: Settings & {
    readonly file?: string;
    /** In place of a SQLite file. */
    readonly store?: PluginEntry;
    /** In addition to the store. */
    readonly plugins?: readonly PluginEntry[];
  } = {},
) {
  const file = options.file ?? (await databaseFile());
  const store = options.store ?? { use: sqlite, config: { file } };
  const served = await serveWith(script, options, [store, ...(options.plugins ?? [])]);
  return { ...served, file };
}

/** Starts a server that keeps its runs in one place. */
export type ServeRuns = (script: Script, options?: Settings) => ReturnType<typeof serveWith>;

/** The same tests for each place in which a server keeps its runs: all serve them alike. */
export function describePlaces(title: string, tests: (serve: ServeRuns) => void): void {
  describe(`${title}, in memory`, () => tests(serveInMemory));
  describe(`${title}, in SQLite`, () => tests(serveStored));
  describe(`${title}, in PostgreSQL`, () => tests(inPostgres()));
}

/** One PostgreSQL for the tests of this block, and a schema for each server. */
function inPostgres(): ServeRuns {
  const missing = postgresIsMissing();
  let postgres: Postgres | undefined;
  let schemas = 0;
  beforeAll(async () => {
    if (missing === undefined) postgres = await startPostgres();
  });
  beforeEach((context) => {
    if (missing !== undefined) context.skip(`host: ${missing}`);
  });
  afterAll(() => postgres?.stop());
  return (script, options = {}) => {
    if (postgres === undefined) throw new Error("PostgreSQL didn't start");
    schemas += 1;
    const config = { url: postgres.url, schema: `runs_${schemas}` };
    return serveStored(script, { ...options, store: { use: storePostgres, config } });
  };
}

export const serveInMemory = (script: Script, options: Settings = {}) => serveWith(script, options, []);

async function serveWith(
  script: Script,
  { configuration, port, token }: Settings,
  stores: readonly PluginEntry[],
) {
  const served = await serveScript(script, {
    configuration: {
      server: { drainMs: 100 },
      ...configuration,
      plugins: [scriptedAgent(script), ...stores],
    },
    ...(port === undefined ? {} : { port }),
    ...(token === undefined ? {} : { token }),
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
