// needs: jail
import { once } from "node:events";
import { chmod } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import type { NetworkBoundary } from "@ambit/core/plugin";
import { describe, expect, onTestFinished, test } from "vitest";
import { configSchema } from "../../../src/config.js";
import { findPrograms, makeJailSetup } from "../../../src/confined/jail-setup.js";
import { openSession } from "../../../src/confined/session.js";
import { spawnConfined } from "../../../src/confined/spawn.js";
import { claimRunnerFolder } from "../../../src/folders/runner-folder.js";
import {
  closed,
  finish,
  openConfined,
  path,
  run,
  shell,
  specOf,
  temporaryFolder,
} from "../../support/specs.js";

/** Sends back what it gets, and ends when its client has. */
async function startEcho(address: string): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    socket.pipe(socket);
  });
  onTestFinished(() => {
    server.close();
  });
  server.listen(0, address);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** Sends to all addresses at once before it reads anything, ends its side, and prints what came back of each. */
const exchange = `
const net = require("node:net");
const { createHash } = require("node:crypto");
const sent = Buffer.alloc(3_000_000, "some bytes of no importance. ");
const hashOf = (bytes) => createHash("sha256").update(bytes).digest("hex");
Promise.all(process.argv.slice(1).map(async (target) => {
  const [, host, port] = /^(.*):(\\d+)$/.exec(target);
  const socket = net.connect(Number(port), host);
  socket.end(sent);
  await new Promise((resolve) => setTimeout(resolve, 300));
  const received = await socket.toArray();
  return hashOf(Buffer.concat(received)) === hashOf(sent) ? "same" : "different";
})).then((all) => console.log(all.join(" ")));
`;

describe.each(["perl", "node"] as const)("the relay in %s", (kind) => {
  test("passes everything both ways at once, and each side's end alone, to all listed ports", async () => {
    const [four, six] = [await startEcho("127.0.0.1"), await startEcho("::1")];
    const range = { kind: "range", port: four } as const;
    const network: NetworkBoundary = {
      mode: "allowlist",
      rules: [
        { ...range, cidr: "127.0.0.1/32", family: 4 },
        { ...range, port: six, cidr: "::1/128", family: 6 },
      ],
    };
    const dataFolder = await temporaryFolder();
    await chmod(dataFolder, 0o711);
    const runner = await claimRunnerFolder(dataFolder);
    onTestFinished(() => runner.close());
    const jailSetup = await makeJailSetup(runner.path);
    const found = jailSetup.programs.relay;
    const relay = kind === "node" ? { kind, program: process.execPath } : found;
    expect(relay.kind).toBe(kind);
    const session = await openSession({
      spec: specOf({ boundary: { ...closed, network } }),
      config: configSchema.parse({}),
      dataFolder,
      runner,
      jailSetup: { ...jailSetup, programs: { ...jailSetup.programs, relay } },
    });
    onTestFinished(() => session.close());
    const targets = Array.from({ length: 10 }, () => [`127.0.0.1:${four}`, `::1:${six}`]).flat();
    const argv = ["node", "-e", exchange, ...targets] as const;
    const { stdout, stderr } = await finish(await spawnConfined(session, { argv, env: { PATH: path } }));
    expect(stderr).toBe("");
    expect(stdout).toBe(`${targets.map(() => "same").join(" ")}\n`);
  });
});

test("a payload's variables change nothing of the relay", async () => {
  // The control: each of them keeps Perl from running anything.
  const sandbox = await openConfined();
  const exposure = await sandbox.expose(() => new Response("served"));
  const variables = { PERL5OPT: "-Mnothing::there", PERL5LIB: "/workspace", UID: "7", IFS: "/" };
  const perl = (await findPrograms()).relay.program;
  const env = { PATH: path, ...variables, TOKEN: exposure.token, URL: exposure.url };
  const script = `${perl} -e 1 2>/dev/null || echo unusable; curl -sS -H "authorization: Bearer $TOKEN" "$URL"`;
  expect((await run(sandbox, shell(script), { env })).stdout).toBe("unusable\nserved");
});
