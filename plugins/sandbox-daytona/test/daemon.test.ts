import { randomUUID } from "node:crypto";
import type { Command } from "@ambit/core/plugin";
import { Daytona, type Sandbox as Machine } from "@daytona/sdk";
import { describe, expect, it, onTestFinished } from "vitest";
import { closed, unlimited } from "./support/boundaries.js";
import { backendFor, expectNothingLeft, open, scopeOf, specOf, useLoopback } from "./support/loopback.js";

const loopback = useLoopback({
  snapshots: {
    root: { user: "root" },
    unprivileged: { user: "root", privileged: false },
    // A home that every user may enter, as in some images.
    "open-home": { user: "root", openHome: true },
  },
});

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;

/** Every way in which a process can reach the daemon's API, with a request: what does it print? */
const attack = (order: string) => `
const net = require("node:net"), os = require("node:os");
const hosts = ["127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1", os.hostname(),
  ...Object.values(os.networkInterfaces()).flat().map(({ address, scopeid }) => scopeid ? address + "%eth0" : address)];
const give = (host) => fetch("http://" + (host.includes(":") ? "[" + host.replace("%", "%25") + "]" : host) + ":2280/process/execute", {
  method: "POST", body: JSON.stringify({ command: ${JSON.stringify(order)} }), signal: AbortSignal.timeout(3000),
}).then(async (answer) => (await answer.json()).result, () => "");
const reach = (host, port) => new Promise((resolve) => {
  const socket = net.connect({ host, port }, () => { socket.destroy(); resolve(port); });
  socket.once("error", () => resolve(0));
});
const ports = hosts.flatMap((host) => [22220, 22222, 33333].map((port) => reach(host, port)));
Promise.all([Promise.all(hosts.map(give)), Promise.all(ports)]).then(([said, open]) =>
  console.log(JSON.stringify({ said: said.join(""), open: [...new Set(open)].filter(Boolean) })));
`;

async function attackAs(
  role: NonNullable<Command["role"]>,
  snapshot: string,
): Promise<{ said: string; open: number[]; secret: string }> {
  const sandbox = await open(await backendFor(loopback(), { snapshot }), { boundary: unlimited });
  const env = { PATH: sandbox.image?.searchPath ?? "" };
  const secret = randomUUID();
  const holder = await sandbox.spawn({ argv: ["/bin/cat"], env: { ...env, SECRET: secret } });
  const order = "id -u; cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep SECRET=";
  const attacker = await sandbox.spawn({ argv: ["node", "-e", attack(order)], env, role });
  const [said] = await Promise.all([
    new Response(attacker.stdout).text(),
    attacker.stdin.close(),
    attacker.exit,
  ]);
  await holder.kill();
  return { ...JSON.parse(said), secret };
}

describe("Daytona's daemon inside", () => {
  // The control: apps/daemon/pkg/toolbox/server.go listens on every address without authentication.
  it("gives every process root if its ports can't be closed", async () => {
    const { said, open, secret } = await attackAs("tool", "unprivileged");
    expect(said).toMatch(/^0\n/);
    expect(said).toContain(`SECRET=${secret}`);
    expect(open).toEqual([22_220, 22_222, 33_333]);
  });

  it.each(["tool", "agent"] as const)("refuses requests of the %s's processes", async (role) => {
    expect(await attackAs(role, "root")).toMatchObject({ said: "", open: [] });
  });

  it("still serves the platform, and the run's own sockets work", async () => {
    const sandbox = await open(await backendFor(loopback()));
    const program = `const s = require("node:net").createServer((c) => c.end("mine")).listen(0, "127.0.0.1", () =>
      require("node:net").connect(s.address().port, "127.0.0.1").on("data", (d) => { console.log(String(d)); s.close(); }))`;
    const started = await sandbox.spawn({
      argv: ["node", "-e", program],
      env: { PATH: sandbox.image?.searchPath ?? "" },
    });
    const [said] = await Promise.all([new Response(started.stdout).text(), started.stdin.close()]);
    expect(said).toBe("mine\n");
    expect(sandbox.evidence["daytona.daemon"]).toBe("closed to all but root by nftables");
  });

  it.each(["unprivileged", "daytona-small"])(
    "opens no boundary that it would break, on the snapshot %s",
    async (snapshot) => {
      const daytona = loopback();
      const backend = await backendFor(daytona, { snapshot });
      for (const capability of ["process.contained", "environment.named-only", "secrets.hidden"] as const) {
        const opening = backend.open(specOf({ boundary: closed, required: [capability] }), scopeOf());
        await expect(opening).rejects.toThrow(
          new RegExp(`${capability}: Daytona's daemon accepts requests .*2280`),
        );
      }
      await expectNothingLeft(daytona);
    },
  );

  // apps/daemon/pkg/toolbox/process/interpreter/repl_client.go: a Python as the image's user, from a script in /tmp.
  describe("when somebody with the platform's key opens a code interpreter", () => {
    const proof = "/opt/proof";
    /** Python's own module of this name isn't found any more. */
    const plant = `echo 'import os; open("${proof}", "w").write(str(os.getuid()))' > /tmp/json.py`;

    const usePlatform = () => {
      const { apiKey, apiUrl } = loopback();
      const platform = new Daytona({ apiKey, apiUrl, target: "us" });
      onTestFinished(() => platform[Symbol.asyncDispose]());
      return platform;
    };

    const printedBy = async (machine: Machine, line: string) =>
      (await machine.process.executeCommand(line)).result.trim();

    // The control.
    it("imports another user's module as root without the bridge", async () => {
      const machine = await usePlatform().create({ snapshot: "root" });
      onTestFinished(() => machine.delete());
      await printedBy(machine, `setpriv --reuid 65534 --regid 65534 --clear-groups sh -c ${quoted(plant)}`);
      expect(await printedBy(machine, "stat -c %u /tmp/json.py")).toBe("65534");
      await machine.codeInterpreter.createContext();
      await expect.poll(() => printedBy(machine, `cat ${proof}`), { timeout: 10_000 }).toBe("0");
    });

    it("imports nothing of a tool beside the bridge, whose script the tool can't replace", async () => {
      const sandbox = await open(await backendFor(loopback()));
      const script = "/tmp/daytona_repl_worker.py";
      const replace = `echo 'import json' > ${script}; rm -f ${script}; mv /tmp/json.py ${script}`;
      // What a process leaves in /tmp is removed with it, so this one stays.
      const tool = await sandbox.spawn({
        argv: ["/bin/sh", "-c", `${plant}; { ${replace}; } 2>/dev/null; echo tried; cat`],
        env: { PATH: sandbox.image?.searchPath ?? "" },
      });
      onTestFinished(async () => void (await tool.kill()));
      const { value } = await tool.stdout.getReader().read();
      expect(Buffer.from(value ?? []).toString()).toBe("tried\n");
      const running = loopback()
        .sandboxes()
        .find(({ state }) => state === "started");
      const machine = await usePlatform().get(running?.id ?? "");
      expect(await printedBy(machine, `stat -c '%u %s' ${script}; stat -c %s /tmp/json.py`)).toMatch(
        /^0 0\n[1-9]/,
      );
      await machine.codeInterpreter.createContext();
      // The script is empty, so Python ends after it.
      await expect
        .poll(() => printedBy(machine, `ps -C python3 -o stat= | grep -vc Z`), { timeout: 10_000 })
        .toBe("0");
      expect(await printedBy(machine, `ls ${proof} 2>/dev/null`)).toBe("");
    });
  });

  // apps/daemon/pkg/session/execute.go: folders 0755, logs 0644.
  it("keeps its sessions' logs, which contain processes' output, readable by root only", async () => {
    const sandbox = await open(await backendFor(loopback(), { snapshot: "open-home" }));
    const env = { PATH: sandbox.image?.searchPath ?? "" };
    const look =
      "ls -d ~root && ls ~root/.daytona/sessions; cat ~root/.daytona/sessions/*/*/output.log | wc -c";
    const started = await sandbox.spawn({ argv: ["/bin/sh", "-c", look], env });
    const [printed, complaint] = await Promise.all([
      new Response(started.stdout).text(),
      new Response(started.stderr).text(),
      started.stdin.close(),
    ]);
    expect(printed).toMatch(/root\n0\n$/);
    expect(complaint).toContain("Permission denied");
  });
});
