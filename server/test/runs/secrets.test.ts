import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import storePostgres from "@ambit/store-postgres";
import { type Postgres, postgresIsMissing, startPostgres } from "@ambit/test-postgres";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it, type TestContext } from "vitest";
import type { Script } from "../support/scripted-agent.js";
import { asking, bodyOf } from "../support/server.js";
import { serveStored } from "../support/stored-server.js";

const secret = "sk-test-5f2c9a71d3e84b06";
const webhookSecret = `whsec_${Buffer.from("32 bytes that cannot be guessed!").toString("base64")}`;
const marker = "not-a-secret-40417";

/** Says what it should never say: in one piece, in parts, in a tool's call and its result. */
const indiscreet: Script = async function* () {
  yield { type: "message", text: `the key is ${secret} ${marker}` };
  yield { type: "message_start", id: "m" };
  for (const part of [secret.slice(0, 7), secret.slice(7, 12), secret.slice(12)])
    yield { type: "message_delta", id: "m", delta: part };
  yield { type: "message_end", id: "m" };
  yield { type: "tool_call", id: "t", name: "env", input: { key: secret } };
  yield { type: "tool_result", id: "t", output: Buffer.from(secret).toString("base64") };
  yield { type: "done", stopReason: "end_turn" };
};

const request = {
  ...asking,
  modelConnection: {
    credentialMode: "env",
    credentials: [
      { binding: { kind: "environment", name: "MODEL_KEY" }, value: secret, usage: "opaque_http" },
    ],
  },
};

interface Rig {
  readonly serve: typeof serveStored;
  /** Everything that lies in the database. */
  readonly raw: (file: string) => Promise<Buffer>;
}

const inFiles: Rig = {
  serve: serveStored,
  // Its log and its index among it.
  raw: async (file) => {
    const folder = dirname(file);
    const names = await readdir(folder);
    return Buffer.concat(await Promise.all(names.map((name) => readFile(join(folder, name)))));
  },
};

/** Every row of every table as text. */
async function inTables(postgres: Postgres, schema: string): Promise<Rig> {
  const store = { use: storePostgres, config: { url: postgres.url, schema } };
  return {
    serve: (script, options) => serveStored(script, { ...options, store }),
    raw: async () => {
      const client = new pg.Client(postgres.url);
      await client.connect();
      try {
        const tables = await client.query<{ name: string }>(
          `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
          WHERE table_schema = $1`,
          [schema],
        );
        const rows: string[] = [];
        for (const { name } of tables.rows) {
          const found = await client.query<{ row: string }>(`SELECT CAST(t AS TEXT) AS row FROM ${name} t`);
          rows.push(name, ...found.rows.map(({ row }) => row));
        }
        return Buffer.from(rows.join("\n"));
      } finally {
        await client.end();
      }
    },
  };
}

/** As it is, in base64, and as PostgreSQL prints bytes. */
const holds = (raw: Buffer, text: string) =>
  [text, Buffer.from(text).toString("base64").replace(/=*$/, ""), Buffer.from(text).toString("hex")].some(
    (form) => raw.includes(form),
  );

const missing = postgresIsMissing();
let postgres: Postgres | undefined;

beforeAll(async () => {
  postgres = missing === undefined ? await startPostgres() : undefined;
});
afterAll(() => postgres?.stop());

describe.each(["files of SQLite", "tables of PostgreSQL"])("what lies in the %s", (place) => {
  const rigFor = async (context: TestContext, schema: string): Promise<Rig> => {
    if (place === "files of SQLite") return inFiles;
    if (postgres === undefined) return context.skip(`host: ${missing}`);
    return inTables(postgres, schema);
  };

  it("contains a run's events, and none of its credentials in any form", async (context) => {
    const { serve, raw } = await rigFor(context, "running");
    const configuration = { webhooks: { secret: webhookSecret } };
    const { post, file } = await serve(indiscreet, { configuration });
    const webhook = { url: `http://127.0.0.1:9/${secret}` };
    expect((await post("/run", { ...request, webhook })).status).toBe(200);
    const stored = await raw(file);
    for (const content of [marker, "run.finished"]) expect(holds(stored, content)).toBe(true);
    for (const hidden of [secret, webhookSecret, webhookSecret.slice(6)])
      expect(holds(stored, hidden)).toBe(false);
  });

  it("contains a queued request only in sealed form", async (context) => {
    const { serve, raw } = await rigFor(context, "queued");
    const configuration = { limits: { concurrentRuns: 1 } };
    const endless: Script = async function* ({ signal }) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      yield { type: "done" };
    };
    const { post, get, file } = await serve(endless, { configuration });
    await post("/run", asking, { prefer: "respond-async" });
    const { runId, state } = await bodyOf<{ runId: string; state: string }>(
      await post("/run", { ...request, agentsMd: marker }, { prefer: "respond-async" }),
    );
    expect(state).toBe("queued");
    const stored = await raw(file);
    expect(holds(stored, runId)).toBe(true);
    for (const content of [secret, marker]) expect(holds(stored, content)).toBe(false);
    expect(await (await get(`/runs/${runId}`)).text()).not.toContain(secret);
  });
});
