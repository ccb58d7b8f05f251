import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { probeSpec } from "@ambit/backend-kit";
import type { Boundary, SandboxSpec, Scope } from "@ambit/core/plugin";
import { type OwnCluster, type PolicyBehaviour, testCluster } from "@ambit/test-cluster";
import { loadYaml } from "@kubernetes/client-node";
import type { z } from "zod";
import { configSchema, KubernetesSandbox } from "../../src/index.js";

/** For sandboxes that the test closes. */
export const scope: Scope = { signal: new AbortController().signal, defer: () => undefined };

export const closed: Partial<Boundary> = { network: { mode: "off", rules: [] } };

/** A spec with only these limits, in the form that `open` takes. */
export function specOf(boundary: Partial<Boundary> = closed, more: Partial<SandboxSpec> = {}): SandboxSpec {
  return { ...probeSpec(boundary), id: `test-${randomUUID()}`, ...more };
}

const policyFile = new URL("../../../../deploy/chart/files/closed-network.yaml", import.meta.url);

/** A namespace of the tests' own cluster with the policy of this repository, and settings for a backend in it. */
export class TestNamespace {
  private constructor(
    readonly own: OwnCluster,
    readonly name: string,
    readonly settings: z.input<typeof configSchema>,
    readonly close: () => Promise<void>,
  ) {}

  static async open(
    behaviour: PolicyBehaviour = {},
    {
      hasPolicy = true,
      labels = {},
    }: { readonly hasPolicy?: boolean; readonly labels?: Record<string, string> } = {},
  ): Promise<TestNamespace> {
    const { own, kubeconfig, image } = await testCluster();
    if (own === undefined)
      throw new Error("these tests need a cluster of their own: see ownUnavailableReason");
    const { name, remove } = await own.createNamespace(labels, behaviour);
    const dataFolder = await mkdtemp(join(tmpdir(), "ambit-kubernetes-"));
    const settings: z.input<typeof configSchema> = {
      kubeconfig,
      image,
      dataFolder,
      namespace: name,
      pull: "Never",
      cpus: 2,
      reserve: { cpus: 0.01, memoryMb: 32 },
      scratchMb: 64,
    };
    const namespace = new TestNamespace(own, name, settings, async () => {
      await remove();
      await rm(dataFolder, { recursive: true, force: true });
    });
    if (hasPolicy)
      await namespace.request("POST", `/apis/networking.k8s.io/v1/namespaces/${name}/networkpolicies`, {
        metadata: { name: "ambit-deny-all" },
        spec: loadYaml(await readFile(policyFile, "utf8")),
      });
    return namespace;
  }

  async request(method: string, path: string, body?: object) {
    const api = this.own.api();
    try {
      return await api.request(method, path, body);
    } finally {
      api.close();
    }
  }

  backend(settings: Partial<z.input<typeof configSchema>> = {}): KubernetesSandbox {
    return new KubernetesSandbox(configSchema.parse({ ...this.settings, ...settings }));
  }

  /** Names of the pods that exist. */
  async pods(): Promise<readonly string[]> {
    return [...(await this.sessions()).keys()];
  }

  /** The session of each pod that exists. */
  async sessions(): Promise<ReadonlyMap<string, string | undefined>> {
    const { items } = await this.request("GET", `/api/v1/namespaces/${this.name}/pods`);
    if (!Array.isArray(items)) throw new Error("the API server sent no list");
    return new Map(
      items.map(({ metadata }: { metadata: { name: string; labels?: Record<string, string> } }) => [
        metadata.name,
        metadata.labels?.["ambit-session"],
      ]),
    );
  }
}
