// needs: jail
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Boundary, Sandbox } from "@ambit/core/plugin";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { configSchema, LocalSandbox } from "../../src/index.js";
import { mayHold, processesOfRuns, socketsOf } from "../../src/process/connection-owner.js";
import { everythingOn, path, scope, specOf } from "../support/specs.js";
import { isRoot, ordinaryUser } from "../support/user.js";

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

  const loopback = "127.0.0.1";
  const from = (remoteAddress: string, remotePort: number, localAddress = loopback) => ({
    localAddress,
    localPort: 0x223d,
    remoteAddress,
    remotePort,
  });

  test("is the caller's, not the runner's own", () => {
    expect(socketsOf(table, from(loopback, 0xc350))).toEqual([{ uid: 64_001, inode: 12 }]);
    expect(socketsOf(table, from(loopback, 1))).toEqual([]);
    expect(socketsOf("", from(loopback, 1))).toEqual([]);
    expect(socketsOf(table, from("", 0xc350))).toEqual([]);
  });

  test("isn't the runner's, if the caller's port is the runner's too", () => {
    const same = [
      ...[
        header,
        row("0100007F:223D", "0200007F:223D", 0, 21),
        row("0200007F:223D", "0100007F:223D", 64_002, 22),
      ],
      row("0300007F:223D", "0100007F:223D", 0, 23),
    ].join("\n");
    expect(socketsOf(same, from("127.0.0.2", 0x223d))).toEqual([{ uid: 64_002, inode: 22 }]);
  });

  test("is found among IPv6 rows, also by an IPv4-mapped address", () => {
    const mapped = "0000000000000000FFFF0000";
    const six = [
      row(`${mapped}0100007F:C350`, `${mapped}0100007F:223D`, 7, 31),
      row("00000000000000000000000001000000:C351", "00000000000000000000000001000000:223D", 8, 32),
      row("B80D0120000000000000000001000000:C352", "B80D0120000000000000000002000000:223D", 9, 33),
    ].join("\n");
    expect(socketsOf(six, from(loopback, 0xc350))).toEqual([{ uid: 7, inode: 31 }]);
    expect(socketsOf(six, from("::ffff:127.0.0.1", 0xc350, "::ffff:127.0.0.1"))).toHaveLength(1);
    expect(socketsOf(six, from("::1", 0xc351, "::1"))).toEqual([{ uid: 8, inode: 32 }]);
    expect(socketsOf(six, from("2001:db8::1", 0xc352, "2001:db8::2"))).toEqual([{ uid: 9, inode: 33 }]);
  });

  test("counts once if the table lists it twice, and twice if there are two", () => {
    const one = row("0100007F:C350", "0100007F:223D", 5, 41);
    expect(socketsOf(`${one}\n${one}`, from(loopback, 0xc350))).toHaveLength(1);
    const other = row("0100007F:C350", "0100007F:223D", 6, 42);
    expect(socketsOf(`${one}\n${other}`, from(loopback, 0xc350))).toHaveLength(2);
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

test("a process that has ended holds no connection, although an ordinary user can't read its descriptors", async () => {
  const user = isRoot ? ordinaryUser : {};
  // The parent becomes a program that doesn't wait for its child, as a shell would, before the child ends.
  const parent = spawn("sh", ["-c", "cat <&3 & echo $!; exec sleep 600 3<&-"], {
    ...user,
    cwd: "/",
    stdio: ["ignore", "pipe", "inherit", "pipe"],
  });
  onTestFinished(() => void parent.kill());
  if (parent.stdout === null) throw new TypeError("its standard output isn't a pipe");
  const [pid] = await once(parent.stdout.setEncoding("latin1"), "data");
  const child = Number(pid);
  await expect.poll(() => readFile(`/proc/${parent.pid}/comm`, "latin1")).toBe("sleep\n");
  parent.stdio[3]?.destroy();
  await expect.poll(() => readFile(`/proc/${child}/stat`, "latin1")).toContain(") Z ");
  const row = { uid: isRoot ? ordinaryUser.uid : (process.getuid?.() ?? 0), inode: 1 };
  if (isRoot) process.seteuid?.(ordinaryUser.uid);
  try {
    await expect(readdir(`/proc/${child}/fd`)).rejects.toThrow("EACCES");
    expect(await mayHold(child, row)).toBe(false);
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
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
    const [port, localAddress, localPort] = process.argv.slice(1);
    const own = localAddress === undefined ? {} : { localAddress, localPort: Number(localPort) };
    const socket = require("node:net").connect({ port: Number(port), host: "127.0.0.1", ...own });
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
      return await backend.madeConnection(endsOf(socket));
    } finally {
      socket?.destroy();
    }
  };
  const endsOf = (socket: Socket | undefined) => {
    const { localPort = 0, remotePort = 0, localAddress = "", remoteAddress = "" } = socket ?? {};
    return { localAddress, localPort, remoteAddress, remotePort };
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

  test("a run without a boundary, from an orphan that is always becoming another program", async () => {
    const sandbox = await backend.open(specOf({ boundary: everythingOn }), scope);
    onTestFinished(() => sandbox.close());
    const orphan = `exec 3<>/dev/tcp/127.0.0.1/$0; export again='exec bash -c "$again"'; exec bash -c "$again"`;
    const connected = once(server, "connection");
    await sandbox.spawn({
      argv: ["bash", "-c", 'setsid --fork bash -c "$1" "$0"; exec sleep 600', String(port()), orphan],
      env: { PATH: path },
    });
    const [socket]: Socket[] = await connected;
    onTestFinished(() => void socket?.destroy());
    // With a single look at each process, some of these questions missed it.
    for (let question = 0; question < 30; question += 1)
      expect(await backend.madeConnection(endsOf(socket))).toBe(true);
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
    // With the runner's own port, at other addresses of the same interface: the order of the table's rows is random.
    for (const last of [2, 3, 4, 5, 6, 7, 8, 9]) {
      const own = [`127.0.0.${last}`, String(port())];
      const bound = madeBy(() =>
        sandbox.spawn({
          argv: [argv[0] ?? "", ...argv.slice(1), String(port()), ...own],
          env: { PATH: path },
        }),
      );
      expect(await bound, own.join(":")).toBe(true);
    }
    await sandbox.close();
  });

  test("can't be found once it has left: then it counts as a run's", async () => {
    const connection = {
      localAddress: "127.0.0.1",
      localPort: port(),
      remoteAddress: "127.0.0.1",
      remotePort: 1,
    };
    expect(await backend.madeConnection(connection)).toBe(true);
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
