import { labelsOf } from "@ambit/backend-kit";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { configSchema, type KubernetesConfig } from "../src/config.js";
import { leftoversIn } from "../src/lifetime.js";
import { Cluster, PodWatch } from "../src/pod/cluster.js";
import { scope, specOf, TestNamespace } from "./support/on-cluster.js";

const reason = await ownUnavailableReason();
/** More than one page of a list. */
const count = process.env.AMBIT_SOAK === undefined ? 260 : 1_000;
const atOnce = 20;

if (reason !== undefined)
  describe("many pods", () => {
    it("aren't listed", (context) => context.skip(`host: ${reason}`));
  });
else
  describe("many pods", { timeout: 300_000 }, () => {
    let namespace: TestNamespace;
    let config: KubernetesConfig;
    let cluster: Cluster;
    const names = Array.from({ length: count }, (_, index) => `many-${index}`);

    beforeAll(async () => {
      namespace = await TestNamespace.open({}, { hasPolicy: false });
      config = configSchema.parse(namespace.settings);
      cluster = new Cluster(config);
      const labels = labelsOf({
        deployment: config.deployment,
        replica: "gone",
        session: "many",
        expires: 0,
      });
      const left = names.values();
      const create = async () => {
        for (const name of left)
          await namespace.request("POST", `/api/v1/namespaces/${namespace.name}/pods`, {
            metadata: { name, labels },
            // No node gets it.
            spec: {
              schedulingGates: [{ name: "test/never" }],
              containers: [{ name: "none", image: "none" }],
            },
          });
      };
      await Promise.all(Array.from({ length: atOnce }, create));
    }, 300_000);
    afterAll(async () => await namespace?.close());

    it("are listed in pages", async () => {
      const found: string[] = [];
      const lengths: number[] = [];
      for await (const { items } of cluster.pods("ambit=sandbox")) {
        lengths.push(items.length);
        found.push(...items.map(({ metadata }) => metadata.name));
      }
      expect(found.toSorted()).toEqual(names.toSorted());
      expect(Math.max(...lengths)).toBe(250);
    });

    it("are all leftovers of a runner that is gone", async () => {
      const found: string[] = [];
      for await (const { name, owner } of leftoversIn(cluster, config)) {
        expect(owner).toMatchObject({ replica: "gone", expires: 0 });
        found.push(name);
      }
      expect(found.toSorted()).toEqual(names.toSorted());
    });

    it("are followed on every page, and one that doesn't exist is missed", async () => {
      const watch = new PodWatch(cluster, "ambit=sandbox");
      const told = new Map<string, boolean>();
      const last = names.toSorted().at(-1) ?? "";
      const pod = await cluster.pod(last);
      // The first one begins the list.
      const follow = (name: string, uid: string, key: string) =>
        watch.follow(name, uid, specOf().log, (seen) => told.set(key, seen !== undefined));
      const stops = [follow("none", "none", "none"), follow(last, pod?.metadata.uid ?? "", "last")];
      await expect.poll(() => told.size, { timeout: 30_000 }).toBe(2);
      for (const stop of stops) stop();
      expect(Object.fromEntries(told)).toEqual({ last: true, none: false });
    });

    it("are removed one by one, each only once it is gone", async () => {
      const [first] = names;
      for await (const { name, remove } of leftoversIn(cluster, config)) if (name === first) await remove();
      expect(await cluster.pod(first ?? "", scope.signal)).toBeUndefined();
    });
  });
