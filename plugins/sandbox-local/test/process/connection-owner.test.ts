import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Boundary, Sandbox } from "@ambit/core/plugin";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { configSchema, LocalSandbox } from "../../src/index.js";
import { processesOfRuns, socketOf } from "../../src/process/connection-owner.js";
import { everythingOn, path, scope, specOf } from "../support/specs.js";

const header =
  "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode";

describe("the other end of a connection in the kernel's table", () => {
  const row = (local: string, remote: string, uid: number, inode: number) =>
    `   1: ${local} ${remote} 01 00000000:00000000 00:00000000 00000000 ${uid}        0 ${inode} 1 0000 20 4 30 10 -1`;
  const table = [
    header,
    row("0100007F:223D", "0100007F:C350", 0, 11),
    row("0100007F:C350", "0100007F:223D", 64_001, 12),
  ].join("\n");

  test("is the caller's, not the runner's own", () => {
    expect(socketOf(table, { localPort: 0x223d, remotePort: 0xc350 })).toEqual({ uid: 64_001, inode: 12 });
    expect(socketOf(table, { localPort: 0x223d, remotePort: 1 })).toBeUndefined();
    expect(socketOf("", { localPort: 1, remotePort: 1 })).toBeUndefined();
  });
});

test("marked processes, their descendants, and processes that share their session belong to a run", () => {
  const one = (pid: number, parent: number, session: number, isMarked = false) => ({
    pid,
    parent,
    session,
    isMarked,
  });
  const all = [
    ...[
      one(1, 0, 1),
      one(10, 1, 10),
      one(20, 10, 20, true),
      one(21, 20, 20),
      one(22, 21, 22),
      one(23, 1, 20),
    ],
    ...[one(30, 10, 10, true), one(31, 10, 10), one(40, 1, 40)],
  ];
  expect([...processesOfRuns(all, 10)].sort()).toEqual([20, 21, 22, 23, 30]);
  expect([...processesOfRuns(all, 10, new Set([40]))].sort()).toEqual([20, 21, 22, 23, 30, 40]);
});

describe("the process that made a connection to this host", () => {
  let backend: LocalSandbox;
  let dataFolder: string;
  const server = createServer();
  const port = () => {
    const address = server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  };
  beforeAll(async () => {
    dataFolder = await mkdtemp(join(tmpdir(), "ambit-owner-"));
    await chmod(dataFolder, 0o755);
    backend = new LocalSandbox(configSchema.parse({ dataFolder, unconfined: "prefer" }));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  });
  afterAll(async () => {
    server.close();
    await rm(dataFolder, { recursive: true, force: true, maxRetries: 5 });
  });

  const program = `
    const socket = require("node:net").connect(Number(process.argv[1]), "127.0.0.1");
    socket.on("connect", () => socket.write("x"));
    setTimeout(() => {}, 60_000);`;
  const calls: Readonly<Record<string, readonly [string, ...string[]]>> = {
    directly: [process.execPath, "-e", program],
    "without its environment": ["/usr/bin/env", "-i", process.execPath, "-e", program],
    "from a child that left its session": ["/usr/bin/setsid", "-w", process.execPath, "-e", program],
  };

  const madeBy = async (call: () => Promise<unknown>) => {
    const connected = once(server, "connection");
    await call();
    const [socket]: Socket[] = await connected;
    try {
      const { localPort = 0, remotePort = 0 } = socket ?? {};
      return await backend.madeConnection({ localPort, remotePort });
    } finally {
      socket?.destroy();
    }
  };

  test.each(Object.entries(calls))("a run without a boundary, %s", async (_how, argv) => {
    const sandbox: Sandbox = await backend.open(specOf({ boundary: everythingOn }), scope);
    expect(sandbox.confinement).toBe("unconfined");
    const started = () => sandbox.spawn({ argv: [...argv, String(port())], env: { PATH: path } });
    expect(await madeBy(started)).toBe(true);
    // For comparison, a caller that belongs to no run.
    expect(await madeBy(async () => callFromHere())).toBe(false);
    await sandbox.close();
  });

  test("a jail that has the host's network", async () => {
    const boundary: Boundary = {
      ...everythingOn,
      filesystem: { mode: "workspace", readable: [], writable: [], denied: [] },
    };
    const sandbox = await backend.open(specOf({ boundary }), scope);
    expect(sandbox.confinement).toBe("confined");
    const argv = calls.directly ?? ["false"];
    const made = madeBy(() =>
      sandbox.spawn({ argv: [argv[0] ?? "", ...argv.slice(1), String(port())], env: { PATH: path } }),
    );
    expect(await made).toBe(true);
    await sandbox.close();
  });

  test("none, if there is no run", async () => {
    expect(await madeBy(async () => callFromHere())).toBe(false);
  });

  const own: Socket[] = [];
  afterAll(() => {
    for (const socket of own) socket.destroy();
  });
  function callFromHere(): void {
    own.push(connect(port(), "127.0.0.1"));
  }
});
