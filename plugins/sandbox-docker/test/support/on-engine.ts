import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { probeSpec } from "@ambit/backend-kit";
import type { Boundary, Capability, SandboxSpec, Scope } from "@ambit/core/plugin";
import { dockerEngine, unavailableReason } from "@ambit/docker-engine";
import { makeAuthority } from "@ambit/egress/credentials";
import { ChangingNames, CredentialHost } from "@ambit/testkit";
import { describeSandboxBackend } from "@ambit/testkit/vitest";
import { afterAll, describe, it } from "vitest";
import { configSchema, DockerSandbox } from "../../src/index.js";
import { ownNetwork } from "./own-network.js";

export type Runtime = "runc" | "runsc";

/** A backend of the test run's engine, which has no network of its own. */
export function settingsFor(runtime: Runtime, dataFolder: string) {
  const { socket, image } = dockerEngine();
  const engine = `unix://${socket}`;
  return { name: nameOf(runtime), engine, image, runtime, network: "none", dataFolder, prewarm: 0 };
}

/** For sandboxes that the test closes. */
export const scope: Scope = { signal: new AbortController().signal, defer: () => undefined };

/** A spec with only these limits, in the form that `openSandbox` takes. */
export function specOf(boundary: Partial<Boundary>, more: Partial<SandboxSpec> = {}): SandboxSpec {
  return { ...probeSpec(boundary), id: `test-${randomUUID()}`, ...more };
}

const nameOf = (runtime: Runtime) => (runtime === "runc" ? "docker" : "docker-gvisor");

const changedByKernel: readonly Capability[] = [
  "network.deny",
  "filesystem.workspace-only",
  "filesystem.host-hidden",
  "process.contained",
  "environment.per-tool",
  "inbound.ports",
];

/** The conformance kit, with a runtime. */
export async function describeConformance(runtime: Runtime): Promise<void> {
  const reason = unavailableReason(runtime);
  if (reason !== undefined) {
    describe(`the kit, with ${runtime}`, () => {
      it("isn't run", (context) => context.skip(`host: ${reason}`));
    });
    return;
  }
  const dataFolder = await mkdtemp(join(tmpdir(), "ambit-docker-"));
  afterAll(() => rm(dataFolder, { recursive: true, force: true }));
  const { credentialHost, authorityFile } = await CredentialHost.openIn(dataFolder, makeAuthority);
  afterAll(() => credentialHost.close());
  const config = configSchema.parse({
    ...settingsFor(runtime, dataFolder),
    ...(runtime === "runc" ? { network: await ownNetwork() } : {}),
    deployment: `kit-${runtime}`,
    // With AMBIT_SOAK=1, most of the attacked sandboxes are prepared ones.
    prewarm: process.env.AMBIT_SOAK ? 2 : 0,
    trustedAuthorities: [authorityFile],
  });
  const names = new ChangingNames();
  // CI tries the contract within a boundary only. Under gVisor, it runs the attacks whose outcome depends on the kernel.
  // AMBIT_SOAK=1 runs everything.
  const short = {
    contractWithoutBoundary: false,
    ...(runtime === "runsc" ? { capabilities: changedByKernel } : {}),
  };
  describeSandboxBackend(() => new DockerSandbox(config, names.lookup), {
    names,
    credentialHost,
    ...(process.env.AMBIT_SOAK ? {} : short),
  });
}
