import { type Leftover, labelsOfDeployment, ownershipOf } from "@ambit/backend-kit";
import type { KubernetesConfig } from "../config.js";
import type { Cluster } from "../pod/cluster.js";
import { deleteAndConfirm } from "../pod/pod-machine.js";
import { deleteLease, isExpired, leasesOf } from "./lease.js";

/** The deployment's pods, whatever their state, and the leases of runners that live no more. */
export async function* leftoversIn(cluster: Cluster, config: KubernetesConfig): AsyncIterable<Leftover> {
  const leases = await leasesOf(cluster, config.deployment);
  const living = new Set(
    leases.filter((lease) => !isExpired(lease, Date.now())).map(({ spec }) => spec.holderIdentity),
  );
  const selector = Object.entries(labelsOfDeployment(config.deployment))
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
  for await (const { items } of cluster.pods(selector)) {
    for (const { metadata } of items) {
      const owner = ownershipOf(metadata.labels);
      yield {
        name: metadata.name,
        // Without a lease, its runner is gone on whatever host it was: its time to live is over.
        owner: owner && (living.has(owner.replica) ? owner : { ...owner, expires: 0 }),
        remove: () => deleteAndConfirm(cluster, config, metadata),
      };
    }
  }
  for (const lease of leases) {
    const { name, labels } = lease.metadata;
    const replica = labels["ambit-replica"];
    if (replica === undefined || !isExpired(lease, Date.now())) continue;
    yield {
      name,
      owner: { deployment: config.deployment, replica, session: "lease", expires: 0 },
      remove: () => deleteLease(cluster, name),
    };
  }
}
