import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import { bareControl, judgeCapability } from "@ambit/testkit";
import { expect, it, onTestFinished } from "vitest";
import { configSchema, DockerSandbox } from "../../src/index.js";
import { changingEngine } from "../mutation/changing-engine.ts";
import { ownNetwork } from "../support/own-network.js";

const reason = unavailableReason("runc");

/** Its sandboxes' loopback isn't this host's, so decoys there are out of reach whatever the sandbox allows. */
it("is caught by the kit when its limited containers have an open network of their own", {
  timeout: 200_000,
}, async (context) => {
  if (reason !== undefined) context.skip(`host: ${reason}`);
  const { socket, image } = dockerEngine();
  const folder = await mkdtemp(join(tmpdir(), "ambit-open-network-"));
  const network = await ownNetwork();
  const engine = changingEngine(socket, {
    isConcealed: true,
    change: (order) => ({ ...order, HostConfig: { ...order.HostConfig, NetworkMode: network } }),
  });
  const path = join(folder, "engine.sock");
  await engine.listen(path);
  const settings = { image, runtime: "runc", network, deployment: "open-network", dataFolder: folder };
  const judge = async (address: string) => {
    const backend = new DockerSandbox(configSchema.parse({ ...settings, engine: `unix://${address}` }));
    // As of a probe that pretends.
    const findings = [{ capability: "network.deny", proven: true, how: "it says so" } as const];
    const only = ["network.deny/near", "network.deny/tcp"];
    const options = { control: bareControl(), only };
    const { attacks } = await judgeCapability(backend, findings, "network.deny", options);
    await backend.close();
    return Object.fromEntries(attacks.map(({ id, verdict }) => [id, verdict]));
  };
  onTestFinished(async () => {
    await engine.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  expect(await judge(path)).toEqual({ "network.deny/near": "escaped", "network.deny/tcp": "proven" });
  expect(await judge(socket)).toEqual({ "network.deny/near": "proven", "network.deny/tcp": "proven" });
});
