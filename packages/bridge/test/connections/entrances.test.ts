import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { Duplex } from "node:stream";
import { buffer } from "node:stream/consumers";
import { freePort } from "@ambit/backend-kit";
import { bridgeSchema, openRemoteSandbox } from "@ambit/bridge";
import type { Sandbox } from "@ambit/core/plugin";
import { describe, expect, it, onTestFinished, test } from "vitest";
import { skipWithout } from "../../../../scripts/vitest/skip-without.ts";
import { openBridged, unlimitedSpec } from "../support/bridged.js";
import { HostilePlatform } from "../support/hostile-platform.js";

const MB = 2 ** 20;

const echo = "socket.pipe(socket)";

/** Serves on a port inside what a program does with each `socket`. */
async function serve(sandbox: Sandbox, port: number, program: string, host = "127.0.0.1") {
  const server = `require("node:net").createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => {});
      ${program};
    }).listen(${port}, "${host}", () => console.log("listening"));`;
  const started = await sandbox.spawn({ argv: [process.execPath, "-e", server], env: {} });
  await started.stdout.getReader().read();
  return started;
}

async function enter(sandbox: Sandbox, port: number): Promise<Duplex> {
  const connection = await sandbox.connect?.(port);
  if (connection === undefined) throw new Error("this sandbox lets nothing in");
  return connection;
}

async function exchange(sandbox: Sandbox, port: number, sent: Uint8Array): Promise<Buffer> {
  const connection = await enter(sandbox, port);
  connection.end(sent);
  return await buffer(connection);
}

const nothing = /^Nothing listens on port/;

describe("a connection into a sandbox", () => {
  it.each([
    ["lines", {}],
    ["bytes", { binary: true }],
    ["a direct pipe", { direct: true }],
  ])("carries both directions, each to its own end, over %s", async (_name, pipes) => {
    const port = await freePort();
    await using bridged = await openBridged({ ...pipes, inbound: [port] });
    await serve(bridged.sandbox, port, echo);
    const large = randomBytes(3 * MB);
    expect(Buffer.compare(await exchange(bridged.sandbox, port, large), large)).toBe(0);
    const many = Array.from({ length: 24 }, (_one, index) => Buffer.from(`number ${index}`));
    expect(await Promise.all(many.map((words) => exchange(bridged.sandbox, port, words)))).toEqual(many);
  });

  it("reaches a server on ::1", async () => {
    skipWithout("ipv6");
    const port = await freePort();
    await using bridged = await openBridged({ direct: true, inbound: [port] });
    await serve(bridged.sandbox, port, echo, "::1");
    expect(String(await exchange(bridged.sandbox, port, Buffer.from("six")))).toBe("six");
  });

  it("is read completely by a slow reader that has ended its half, although the server has closed", async () => {
    const port = await freePort();
    await using bridged = await openBridged({ direct: true, inbound: [port] });
    await serve(bridged.sandbox, port, `socket.resume(); socket.end(Buffer.alloc(${6 * MB}, "x"))`);
    const connection = await enter(bridged.sandbox, port);
    connection.end("request");
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect((await buffer(connection)).length).toBe(6 * MB);
  });

  it("keeps a server waiting that sends more than is read, and no other", async () => {
    const port = await freePort();
    await using bridged = await openBridged({ direct: true, inbound: [port] });
    const { sandbox } = bridged;
    const pour = `let n = 0;
      const more = () => {
        while (socket.write(Buffer.alloc(65536))) n++;
        require("node:fs").writeFileSync("poured", String(n));
      };
      socket.on("drain", () => { n++; more(); });
      more()`;
    await serve(sandbox, port, pour);
    const connection = await enter(sandbox, port);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    const poured = Number(String(Buffer.from(await sandbox.readFile(`${sandbox.workspace}/poured`))));
    expect(poured).toBeGreaterThan(1);
    // The window, the kernel's buffers and what Node reads ahead.
    expect(poured * 65_536).toBeLessThan(16 * MB);
    connection.destroy();
  });

  it("ends with its server, and with the sandbox", async () => {
    const port = await freePort();
    await using bridged = await openBridged({ direct: true, inbound: [port] });
    const server = await serve(bridged.sandbox, port, echo);
    const first = await enter(bridged.sandbox, port);
    // A server that ends before it has accepted a connection resets it.
    first.write("accepted");
    await once(first, "data");
    const ended = once(first.resume(), "end");
    await server.kill();
    await ended;
    await expect(enter(bridged.sandbox, port)).rejects.toThrow(nothing);
    await serve(bridged.sandbox, port, `socket.end("last words")`);
    const second = await enter(bridged.sandbox, port);
    await bridged.sandbox.close();
    // Unread data doesn't keep it.
    expect(second.destroyed).toBe(true);
    await expect(enter(bridged.sandbox, port)).rejects.toThrow("is closed");
  });
});

describe("a port inside", () => {
  it("is entered only if it is listed, and nothing is sent for another", async () => {
    const [listed, unlisted] = [await freePort(), await freePort()];
    await using bridged = await openBridged({ direct: true, inbound: [listed] });
    const { sandbox } = bridged;
    await Promise.all([serve(sandbox, listed, echo), serve(sandbox, unlisted, echo)]);
    expect(String(await exchange(sandbox, listed, Buffer.from("control")))).toBe("control");
    const refused = `Port ${unlisted} isn't open in the sandbox session: name it in ports`;
    await expect(enter(sandbox, unlisted)).rejects.toThrow(refused);

    const silent = await openHostile(() => undefined, [listed]);
    const before = silent.platform.received.length;
    await expect(enter(silent.sandbox, unlisted)).rejects.toThrow("isn't open");
    expect(silent.platform.received.length).toBe(before);
    await using closed = await openBridged({ direct: true });
    expect(closed.sandbox.connect).toBeUndefined();
  });

  it("takes a limited number of connections, and others afterwards", async () => {
    const port = await freePort();
    await using bridged = await openBridged({ direct: true, inbound: [port] });
    const { sandbox } = bridged;
    await serve(sandbox, port, echo);
    const all = await Promise.allSettled(Array.from({ length: 200 }, () => enter(sandbox, port)));
    const open = all.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    expect(open).toHaveLength(128);
    for (const connection of open) connection.destroy();
    await expect.poll(() => exchange(sandbox, port, Buffer.from("again")).then(String, String)).toBe("again");
  });
});

const facts = { searchPath: "/bin", node: "20.0.0", uid: 1, ownUsers: false, openPorts: [] };

/** A sandbox whose guest daemon says what the test likes. */
async function openHostile(answer: (kind: string) => object | undefined, ports: readonly number[]) {
  const platform = new HostilePlatform((kind) => (kind === "facts" ? facts : answer(kind)));
  const sandbox = await openRemoteSandbox(
    {
      platform,
      spec: unlimitedSpec(),
      bridge: bridgeSchema.parse({}),
      evidence: {},
      inbound: () => ports,
    },
    { signal: new AbortController().signal, defer: () => undefined },
  );
  onTestFinished(() => sandbox.close());
  return { platform, sandbox };
}

describe("a hostile guest daemon", () => {
  it("gets a few seconds for an answer", { timeout: 20_000 }, async () => {
    const { sandbox } = await openHostile(() => undefined, [4_000]);
    await expect(enter(sandbox, 4_000)).rejects.toThrow(nothing);
  });

  it.each([{ refused: "x" }, { done: "yes" }, { port: 4_000 }])(
    "isn't believed when it answers %j",
    async (said) => {
      const { sandbox } = await openHostile((kind) => (kind === "enter" ? said : undefined), [4_000]);
      await expect(enter(sandbox, 4_000)).rejects.toThrow(nothing);
    },
  );

  it("can't open such a connection itself", async () => {
    const { platform } = await openHostile(() => undefined, [4_000]);
    platform.send(["open", 2, "enter"]);
    await expect.poll(() => platform.received.at(-1)).toEqual(["close", 2]);
  });

  it("can't put the exposures' port where the runner enters", async () => {
    const { sandbox } = await openHostile(
      (kind) => (kind === "listen" ? { port: 4_000 } : undefined),
      [4_000],
    );
    await expect(sandbox.expose(() => new Response())).rejects.toThrow("its port is the run's");
    const control = await openHostile((kind) => (kind === "listen" ? { port: 4_001 } : undefined), [4_000]);
    expect((await control.sandbox.expose(() => new Response())).url).toBe("http://127.0.0.1:4001");
  });
});

test("exposures listen on no port that the runner enters", async () => {
  const range = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "utf8")
    .trim()
    .split(/\s+/)
    .map(Number);
  const [first = 0, last = 0] = range;
  // All but a few of those that the system chooses: it begins with the lower half.
  const inbound = Array.from({ length: Math.floor((last - first) * 0.48) }, (_one, index) => first + index);
  await using bridged = await openBridged({ direct: true, inbound });
  const { url, token } = await bridged.sandbox.expose(() => new Response("here"));
  expect(inbound).not.toContain(Number(new URL(url).port));
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  expect(await answer.text()).toBe("here");
});
