import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Capability } from "@ambit/core/plugin";
import { makeAuthority } from "@ambit/egress/credentials";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { ChangingNames, CredentialHost } from "@ambit/testkit";
import { describeSandboxBackend } from "@ambit/testkit/vitest";
import { afterAll, describe, it } from "vitest";
import type { PodShape } from "../src/enter.js";
import { configSchema, KubernetesSandbox } from "../src/index.js";
import { TestNamespace } from "./support/on-cluster.js";

/** In every run, one shape, and what only a pod's own network can break. With AMBIT_SOAK, everything in both shapes. */
const isThorough = process.env.AMBIT_SOAK !== undefined;
const shapes: readonly PodShape[] = isThorough ? ["user-namespace", "baseline"] : ["user-namespace"];
const attacked: readonly Capability[] = ["network.deny", "inbound.ports"];

const reason = await ownUnavailableReason();
if (reason !== undefined) {
  describe("the kit, in pods", () => {
    it("isn't run", (context) => context.skip(`host: ${reason}`));
  });
} else {
  const folder = await mkdtemp(join(tmpdir(), "ambit-kubernetes-kit-"));
  const { credentialHost, authorityFile } = await CredentialHost.openIn(folder, makeAuthority);
  afterAll(async () => {
    await credentialHost.close();
    await rm(folder, { recursive: true, force: true });
  });
  for (const shape of shapes) {
    // The better shape has to hold without any controller.
    const namespace = await TestNamespace.open({ enforced: shape === "baseline" });
    afterAll(() => namespace.close());
    const names = new ChangingNames();
    const config = configSchema.parse({
      ...namespace.settings,
      name: shape,
      hostUsers: shape === "baseline" ? "off" : "require",
      trustedAuthorities: [authorityFile],
    });
    describeSandboxBackend(() => new KubernetesSandbox(config, names.lookup), {
      names,
      credentialHost,
      ...(isThorough ? {} : { contractWithoutBoundary: false, capabilities: attacked }),
    });
  }
}
