// needs: jail
import { writeFileSync } from "node:fs";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  bodyOf,
  demo,
  emptyFolder,
  isMessage,
  ndjson,
  readUntil,
  recordsOf,
  type Server,
  serve,
} from "../support/ambit.js";
import { descendantsOf, isAlive } from "../support/processes.js";

const closed = { network: "off", filesystem: "workspace" };
const patience = { timeout: 120_000 };

/** Servers of one store and one data folder, one after the other on the same port. @param settings of sandbox-local. */
async function host(settings: object = {}, more: object = {}) {
  const folder = await emptyFolder();
  // Sessions have users of their own where the server is root.
  await chmod(folder, 0o711);
  const config = join(folder, "config.mjs");
  writeFileSync(
    config,
    `export default ${JSON.stringify({
      ...more,
      extends: "defaults",
      probes: { keepAcrossRestarts: true },
      plugins: [{ use: "@ambit/sandbox-local", config: { dataFolder: join(folder, "data"), ...settings } }],
    })};`,
  );
  let port = "0";
  return async (): Promise<Server> => {
    const env = { AMBIT_SQLITE_FILE: join(folder, "runs.sqlite"), AMBIT_PORT: port };
    const server = await serve(env, ["--config", config]);
    port = new URL(server.url).port;
    return server;
  };
}

const sender = (server: Server) => async (request: object) =>
  bodyOf(await server.post("/run", { sandboxPermission: closed, sessionId: "s", ...request }));

async function kill(server: Server): Promise<void> {
  server.process.kill("SIGKILL");
  await server.exit;
}

it(
  "a session goes on with its files and its conversation after its server was killed, again and again",
  patience,
  async () => {
    const start = await host();
    const limited = { sandboxPermission: { ...closed, resources: { diskMb: 32, processes: 64 } } };
    let server = await start();
    const plain = await sender(server)(demo("write a.txt precious", "say begun"));
    expect(plain, server.log()).toMatchObject({ ok: true });
    const onDisk = await sender(server)({
      ...demo("write b.txt dear", "say begun"),
      ...limited,
      sessionId: "disk",
    });
    for (const round of [1, 2]) {
      await kill(server);
      server = await start();
      const next = await sender(server)(demo("run cat a.txt && echo more >> a.txt", "recall"));
      expect(next, server.log()).toMatchObject({ ok: true, receipt: { session: { history: "loaded" } } });
      expect(next.warnings).toBeUndefined();
      expect(JSON.stringify(next.events)).toContain(`precious${"more\\\\n".repeat(0)}`);
      expect(next.output, `round ${round}`).toContain("write a.txt precious");
      if (!onDisk.ok) continue;
      const same = await sender(server)({ ...demo("run cat b.txt", "say x"), ...limited, sessionId: "disk" });
      expect(same, server.log()).toMatchObject({ ok: true });
      expect(JSON.stringify(same.events)).toContain("dear");
    }
    // Its disk is mounted in the test's folder.
    server.process.kill("SIGTERM");
    await server.exit;
  },
);

it("what the run in progress had written is there too, and its processes are not", patience, async () => {
  const start = await host();
  const server = await start();
  const script = demo("write a.txt half", "detach 900", "say written", "sleep 60000");
  const response = await server.post(
    "/run",
    { ...script, sandboxPermission: closed, sessionId: "s" },
    ndjson,
  );
  await readUntil(recordsOf(response), isMessage("written"));
  const started = descendantsOf(server.pid).map(({ pid }) => pid);
  expect(started.length).toBeGreaterThan(0);
  await kill(server);
  const next = await start();
  const found = await sender(next)(demo("run cat a.txt", "say x"));
  expect(found, next.log()).toMatchObject({ ok: true });
  expect(JSON.stringify(found.events)).toContain("half");
  await expect.poll(() => started.filter((pid) => isAlive(pid)), { timeout: 30_000 }).toEqual([]);
});

it("files that waited too long are lost, and that is said", patience, async () => {
  const start = await host({ takeoverMinutes: 0 });
  const server = await start();
  expect(await sender(server)(demo("write a.txt precious", "say begun"))).toMatchObject({ ok: true });
  await kill(server);
  const next = await sender(await start())(demo("run cat a.txt", "say x"));
  expect(next.warnings).toEqual([
    { path: "sessionId", message: expect.stringContaining("its server ended without closing it") },
  ]);
  expect(JSON.stringify(next.events)).not.toContain("precious");
});
