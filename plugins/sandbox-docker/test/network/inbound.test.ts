import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import type { Boundary, Sandbox } from "@ambit/core/plugin";
import { unavailableReason } from "@ambit/docker-engine";
import { describe, expect, it, onTestFinished } from "vitest";
import { inboundGaps } from "../../src/backend.js";
import { configSchema, DockerSandbox } from "../../src/index.js";
import { type Runtime, scope, settingsFor, specOf } from "../support/on-engine.js";

const closed = { network: { mode: "off", rules: [] } } as const;
/** Its programs get the proxy, whose port inside is the bridge's own. */
const listed = {
  network: { mode: "allowlist", rules: [{ kind: "host", name: "example.test", subdomains: false }] },
} as const;

const echo = `require("node:net").createServer({ allowHalfOpen: true }, (socket) => {
  socket.on("error", () => {});
  socket.write(process.argv[2] + " ");
  socket.pipe(socket);
}).listen(Number(process.argv[1]), () => console.log("listening"));`;

async function serve(sandbox: Sandbox, port: number, words: string) {
  const argv = ["node", "-e", echo, `${port}`, words] as const;
  const env = { PATH: sandbox.image?.searchPath ?? "" };
  const started = await sandbox.spawn({ argv, env, role: "agent" });
  await started.stdout.getReader().read();
}

async function exchange(sandbox: Sandbox, port: number, sent: string): Promise<string> {
  const connection = await sandbox.connect?.(port);
  if (connection === undefined) throw new Error("this sandbox lets nothing in");
  connection.end(sent);
  return String(await buffer(connection));
}

async function backendWith(runtime: Runtime, settings: object = {}) {
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-docker-inbound-"));
  const deployment = `inbound-${runtime}`;
  const backend = new DockerSandbox(
    configSchema.parse({ ...settingsFor(runtime, dataFolder), deployment, ...settings }),
  );
  onTestFinished(async () => {
    await backend.close();
    await rm(dataFolder, { recursive: true, force: true, maxRetries: 5 });
  });
  return async (boundary: Partial<Boundary>) => {
    const sandbox = await backend.open(specOf(boundary), scope);
    onTestFinished(() => sandbox.close());
    return sandbox;
  };
}

describe.for(["runc", "runsc"] as const)("connections into a container with %s", (runtime) => {
  it("reach a server on a listed port, and nothing else", { timeout: 120_000 }, async (context) => {
    const missing = unavailableReason(runtime);
    if (missing !== undefined) context.skip(`host: ${missing}`);
    const open = await backendWith(runtime);
    const [one, other] = await Promise.all([
      open({ ...closed, inbound: [4_000, 4_001] }),
      open({ ...listed, inbound: [4_000, 4_001] }),
    ]);
    await Promise.all([serve(one, 4_000, "one"), serve(one, 4_002, "hidden"), serve(other, 4_001, "other")]);
    const large = "x".repeat(3_000_000);
    expect(await exchange(one, 4_000, large)).toBe(`one ${large}`);
    expect(await exchange(other, 4_001, "y")).toBe("other y");
    await expect(exchange(one, 4_001, "")).rejects.toThrow("Nothing listens on port 4001");
    await expect(exchange(other, 4_000, "")).rejects.toThrow("Nothing listens on port 4000");
    await expect(exchange(one, 4_002, "")).rejects.toThrow("Port 4002 isn't open");
    const connection = await one.connect?.(4_000);
    await one.close();
    expect(connection?.destroyed).toBe(true);
  });
});

it("a network with options is a gap, where the sandbox is in it", () => {
  const gapsOf = (network: string, boundary: Partial<Boundary>) =>
    inboundGaps({ ...specOf(boundary).boundary }, { network }).map(({ capability }) => capability);
  const open = { network: { mode: "on", rules: [] }, inbound: [4_000] } as const;
  expect(gapsOf("pasta:-T,auto", open)).toEqual(["inbound.ports"]);
  expect(gapsOf("bridge", open)).toEqual([]);
  expect(gapsOf("pasta:-T,auto", { ...open, ...closed })).toEqual([]);
  expect(gapsOf("pasta:-T,auto", { ...open, inbound: undefined })).toEqual([]);
});

it.for(["host", "container:other", "ns:/proc/1/ns/net"])(
  "the network %s, whose ports aren't a sandbox's own, isn't accepted",
  (network) => {
    expect(configSchema.safeParse({ network }).error?.issues).toMatchObject([{ path: ["network"] }]);
    expect(configSchema.safeParse({ network: "bridge" }).success).toBe(true);
  },
);
