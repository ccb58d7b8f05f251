import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chown, mkdir, rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { migrations } from "@ambit/sql-store/schema";
import {
  type PgBouncer,
  type Postgres,
  pgbouncerIsMissing,
  postgresIsMissing,
  startPgBouncer,
  startPostgres,
} from "@ambit/test-postgres";
import { describeStore, type StoreRig } from "@ambit/testkit/vitest";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const missing = postgresIsMissing();
let server: Postgres;
let rigs = 0;

if (missing !== undefined) {
  it("holds the conformance kit", (context) => context.skip(`host: ${missing}`));
} else {
  describe("on a real server", () => {
    beforeAll(async () => {
      server = await startPostgres();
    });
    afterAll(() => server.stop());
    describeStore("postgres", () => makeRig());

    it("leaves a run that another replica is claiming to it, and doesn't wait", async () => {
      const schema = "claimed";
      const { openPostgres } = await import("../src/open-postgres.js");
      const log = { debug() {}, info() {}, warn() {}, error() {} };
      const store = await openPostgres({ url: server.url, schema, connections: 2, pooling: "none" }, log);
      const other = new pg.Client(server.url);
      await other.connect();
      try {
        const run = { project: undefined, session: undefined, replica: "one", digest: "d", harness: "demo" };
        for (const id of ["first", "second"])
          await store.create({ ...run, id, sandbox: "local", state: "queued", sealedRequest: "sealed" });
        await other.query("BEGIN");
        await other.query(`SELECT id FROM ${schema}.ambit_runs WHERE id = 'first' FOR UPDATE`);
        expect(await store.nextQueued("one", 5)).toEqual(["second"]);
        expect(await store.claim("first", "one")).toBeUndefined();
        expect(await store.claim("second", "one")).toMatchObject({ fence: 2 });
        // As when that replica dies: the run is free at once.
        await other.query("ROLLBACK");
        expect(await store.nextQueued("one", 5)).toEqual(["first"]);
      } finally {
        await other.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
        await Promise.all([other.end(), store.close()]);
      }
    });

    it("names a full disk to each of its replicas, which end their runs and delete there", async (context) => {
      const schema = "filled";
      const disk = join(server.folder, "disk-full");
      if (!(await smallDisk(disk)))
        context.skip("host: no file system can be mounted here, so no disk can be filled");
      const { openPostgres } = await import("../src/open-postgres.js");
      const log = { debug() {}, info() {}, warn() {}, error() {} };
      const client = new pg.Client(server.url);
      await client.connect();
      const open = () => openPostgres({ url: server.url, schema, connections: 2, pooling: "none" }, log);
      const end = { result: "{}", outcome: "completed", summary: "{}", session: undefined } as const;
      const replicas = { one: await open(), two: await open() };
      try {
        await client.query(`CREATE TABLESPACE space_full LOCATION '${disk}/space'`);
        const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = $1", [
          schema,
        ]);
        for (const { tablename } of rows)
          await client.query(`ALTER TABLE ${schema}.${tablename} SET TABLESPACE space_full`);
        const run = {
          project: undefined,
          session: undefined,
          digest: "d",
          harness: "demo",
          sandbox: "local",
        };
        for (const [replica, store] of Object.entries(replicas)) {
          await store.renew(replica, "http://here", 60_000);
          await store.create({ ...run, id: replica, state: "running", replica });
        }
        const { bavail, bsize } = await statfs(disk);
        await writeFile(join(disk, "filling"), Buffer.alloc(bavail * bsize));
        const full = { code: "store_failed", status: 503, message: expect.stringContaining("delete runs") };
        for (const [runId, store] of Object.entries(replicas)) {
          const fill = async () => {
            for (let first = 1; first <= 200; first += 1) {
              // The server compresses what repeats.
              const text = `${randomBytes(60_000).toString("base64")}\n`;
              await store.append({ runId, fence: 1, first, count: 1, text });
            }
          };
          await expect(fill()).rejects.toMatchObject(full);
          await store.renew(runId, "http://here", 60_000);
          expect(await store.finish(runId, 1, end)).toBe("written");
        }
        expect(await replicas.two.delete("one")).toBe(true);
        expect(await replicas.one.get("one")).toBeUndefined();
        await rm(join(disk, "filling"));
        await replicas.one.create({ ...run, id: "next", state: "running", replica: "one" });
      } finally {
        await Promise.all(Object.values(replicas).map((store) => store.close()));
        await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
        await client.query("DROP TABLESPACE IF EXISTS space_full");
        await client.end();
        spawnSync("umount", [disk]);
      }
    });

    it("says what a run of an earlier schema came to", async () => {
      const [schema, version] = ["earlier", 12];
      const client = new pg.Client(server.url);
      await client.connect();
      try {
        await client.query(`CREATE SCHEMA ${schema}; SET search_path = ${schema}`);
        await client.query("CREATE TABLE ambit_schema (version BIGINT NOT NULL)");
        await client.query(`INSERT INTO ambit_schema VALUES (${version})`);
        for (const { text } of migrations.slice(0, version).flat()) await client.query(text);
        await client.query(
          `INSERT INTO ambit_runs (id, state, replica, fence, digest, harness, sandbox, created_at, result)
          VALUES ('r', 'ended', 'one', 1, 'd', 'demo', 'local', 1, '{"ok":false,"error":"none"}')`,
        );
        const { openPostgres } = await import("../src/open-postgres.js");
        const log = { debug() {}, info() {}, warn() {}, error() {} };
        const store = await openPostgres({ url: server.url, schema, connections: 1, pooling: "none" }, log);
        expect(await store.list({ outcome: "failed", limit: 1 })).toMatchObject([{ id: "r" }]);
        await store.close();
      } finally {
        await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
        await client.end();
      }
    });

    it("compresses events by lz4 where the server has it", async (context) => {
      const schema = "compressed";
      const client = new pg.Client(server.url);
      await client.connect();
      try {
        const { rowCount: hasLz4 } = await client.query(
          "SELECT 1 FROM pg_settings WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)",
        );
        if (hasLz4 !== 1) return context.skip("host: this PostgreSQL was built without lz4");
        const { openPostgres } = await import("../src/open-postgres.js");
        const log = { debug() {}, info() {}, warn() {}, error() {} };
        const store = await openPostgres({ url: server.url, schema, connections: 1, pooling: "none" }, log);
        await store.close();
        const { rows } = await client.query(
          `SELECT attcompression FROM pg_attribute
          WHERE attrelid = '${schema}.ambit_chunks'::regclass AND attname = 'body'`,
        );
        expect(rows).toEqual([{ attcompression: "l" }]);
      } finally {
        await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
        await client.end();
      }
    });
  });

  describe("behind PgBouncer", () => {
    const lacking = pgbouncerIsMissing();
    if (lacking !== undefined) {
      it("holds the conformance kit", (context) => context.skip(`host: ${lacking}`));
      return;
    }
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const ignoring = {
      ignore_startup_parameters: "options,statement_timeout,idle_in_transaction_session_timeout",
    };
    let pooler: PgBouncer;
    beforeAll(async () => {
      server = await startPostgres();
      pooler = await startPgBouncer(server, { pool_mode: "transaction" });
    });
    afterAll(async () => {
      await pooler.stop();
      await server.stop();
    });
    describeStore("postgres by transactions", () => makeRig({ url: pooler.url, pooling: "transaction" }));

    const tables = async () => {
      const client = new pg.Client(server.url);
      await client.connect();
      try {
        const { rows } = await client.query("SELECT 1 FROM pg_tables WHERE tablename LIKE 'ambit%'");
        return rows.length;
      } finally {
        await client.end();
      }
    };

    it.each<
      [what: string, Parameters<typeof startPgBouncer>[1], searchPath: string | undefined, says: RegExp]
    >([
      [
        "refuses startup parameters",
        { pool_mode: "session" },
        undefined,
        /refused the connection \(unsupported/,
      ],
      [
        "ignores them, by sessions",
        { pool_mode: "session", ...ignoring },
        undefined,
        /doesn't have the search path "refused"/,
      ],
      [
        "ignores them, by transactions",
        { pool_mode: "transaction", ...ignoring },
        undefined,
        /a pooler of transactions/,
      ],
      ["has no transactions", { pool_mode: "statement", ...ignoring }, undefined, /pooler/],
      // Where the role has the search path, only the change of connections tells.
      [
        "ignores them, for a role with the search path",
        { pool_mode: "transaction", ...ignoring },
        "refused",
        /a pooler of transactions/,
      ],
    ])("refuses one by name that %s, and creates nothing", async (_what, settings, searchPath, says) => {
      const other = await startPgBouncer(server, settings);
      const client = new pg.Client(server.url);
      await client.connect();
      const { openPostgres } = await import("../src/open-postgres.js");
      try {
        if (searchPath !== undefined) await client.query(`ALTER ROLE ambit SET search_path = ${searchPath}`);
        const before = await tables();
        const opening = openPostgres(
          { url: other.url, schema: "refused", connections: 2, pooling: "none" },
          log,
        );
        const failure = await opening.then(
          () => undefined,
          (error: unknown) => error,
        );
        expect(failure).toMatchObject({
          message: expect.stringMatching(says),
        });
        expect(failure).toMatchObject({ message: expect.stringContaining('"pooling": "transaction"') });
        expect(await tables()).toBe(before);
      } finally {
        await client.query("ALTER ROLE ambit RESET search_path");
        await client.end();
        await other.stop();
      }
    });

    it("works with `transaction` also where nothing needs it", async () => {
      const { openPostgres } = await import("../src/open-postgres.js");
      const sessions = await startPgBouncer(server, { pool_mode: "session" });
      try {
        for (const url of [sessions.url, server.url]) {
          const store = await openPostgres(
            { url, schema: "works", connections: 2, pooling: "transaction" },
            log,
          );
          expect(await store.list({ limit: 1 })).toEqual([]);
          await store.close();
        }
      } finally {
        await sessions.stop();
      }
    });
  });
}

/** A separate schema in the one server. @param more settings of the store */
async function makeRig(more: Readonly<Record<string, string>> = {}): Promise<StoreRig> {
  rigs += 1;
  const schema = `test_${rigs}`;
  const space = `small_${rigs}`;
  const query = async (text: string) => {
    const client = new pg.Client(server.url);
    await client.connect();
    try {
      return await client.query(text);
    } finally {
      await client.end();
    }
  };
  const disk = join(server.folder, `disk-${rigs}`);
  return {
    module: import.meta.resolve("@ambit/store-postgres"),
    config: { url: server.url, schema, ...more },
    drop: async () => {
      await query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'ambit ${schema}'`,
      );
    },
    setSchema: async (version) => {
      await query(`UPDATE ${schema}.ambit_schema SET version = ${version}`);
    },
    ...((await smallDisk(disk))
      ? {
          fill: async () => {
            // Events go to a separate disk, which is then filled.
            await query(`CREATE TABLESPACE ${space} LOCATION '${disk}/space'`);
            await query(`ALTER TABLE ${schema}.ambit_chunks SET TABLESPACE ${space}`);
            const { bavail, bsize } = await statfs(disk);
            await writeFile(join(disk, "filling"), Buffer.alloc(bavail * bsize));
            return () => rm(join(disk, "filling"));
          },
        }
      : { fullReason: "no file system can be mounted here, so no disk can be filled" }),
    close: async () => {
      await query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await query(`DROP TABLESPACE IF EXISTS ${space}`);
      spawnSync("umount", [disk]);
    },
  };
}

async function smallDisk(disk: string): Promise<boolean> {
  await mkdir(disk);
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=8m,mode=755", "tmpfs", disk]);
  if (status !== 0) return false;
  await mkdir(join(disk, "space"));
  const nobody = (flag: string) => Number(spawnSync("id", [flag, "nobody"], { encoding: "utf8" }).stdout);
  await chown(join(disk, "space"), nobody("-u"), nobody("-g"));
  return true;
}
