import { type Leftover, labelsOfDeployment, ownershipOf } from "@ambit/backend-kit";
import type { Log } from "@ambit/core/plugin";
import { z } from "zod";
import { ApiError, isGone } from "./api/server.js";
import type { KubernetesConfig } from "./config.js";
import type { Cluster } from "./pod/cluster.js";
import type { LeaseReference } from "./pod/manifest.js";
import { deleteAndConfirm } from "./pod/pod-machine.js";

const group = "apis/coordination.k8s.io/v1";
/** Longer than an API server is away: another runner deletes the pods of one whose lease has expired. */
const leaseSeconds = 600;
const renewMs = 60_000;

const leaseSchema = z.looseObject({
  metadata: z.looseObject({
    name: z.string(),
    uid: z.string(),
    resourceVersion: z.string().catch(""),
    labels: z.record(z.string(), z.string()).catch({}),
  }),
  spec: z.looseObject({
    holderIdentity: z.string().optional(),
    renewTime: z.string().optional(),
    leaseDurationSeconds: z.int().catch(leaseSeconds),
  }),
});
export type Lease = z.output<typeof leaseSchema>;
const leaseListSchema = z.object({ items: z.array(leaseSchema) });

const leaseName = (deployment: string, replica: string) => `ambit-${deployment}-${replica}`;

/** Whether its runner has given it up, or lives no more. Pure. */
function isExpired({ spec }: Lease, now: number): boolean {
  const renewed = Date.parse(spec.renewTime ?? "");
  return !(renewed + spec.leaseDurationSeconds * 1_000 > now);
}

/** Finds what belongs to a deployment. */
function selectorOf(deployment: string): string {
  return Object.entries(labelsOfDeployment(deployment))
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
}

async function leasesOf(cluster: Cluster, deployment: string): Promise<readonly Lease[]> {
  const path = cluster.path("leases", undefined, group);
  const query = { labelSelector: selectorOf(deployment) };
  return (await cluster.api.ask({ path, query }, leaseListSchema)).items;
}

async function deleteLease(cluster: Cluster, name: string): Promise<void> {
  try {
    const path = cluster.path("leases", name, group);
    await cluster.api.ask({ method: "DELETE", path }, z.unknown());
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

/** Shows all runners of a deployment that this one lives. Its pods end with it: they have it as their owner. */
export class ReplicaLease {
  readonly #cluster: Cluster;
  readonly #deployment: string;
  readonly #replica: string;
  #timer: NodeJS.Timeout | undefined;
  #uid: string | undefined;

  constructor(cluster: Cluster, deployment: string, replica: string) {
    this.#cluster = cluster;
    this.#deployment = deployment;
    this.#replica = replica;
  }

  /** Creates it, or takes it up again, and renews it from then on. @throws ApiError, Error */
  async hold(log: Log): Promise<void> {
    await this.#write();
    this.#timer = setInterval(() => {
      this.#write().catch((error: unknown) => log.warn({ error }, "the runner's lease couldn't be renewed"));
    }, renewMs).unref();
  }

  /** Of the lease as it was written last. @throws Error before `hold` */
  get reference(): LeaseReference {
    if (this.#uid === undefined) throw new Error("the runner holds no lease");
    return { name: this.#name, uid: this.#uid };
  }

  get #name(): string {
    return leaseName(this.#deployment, this.#replica);
  }

  async release(): Promise<void> {
    clearInterval(this.#timer);
    await deleteLease(this.#cluster, this.#name);
  }

  /** One that somebody deleted is made again, with another uid. */
  async #write(): Promise<void> {
    this.#uid = (await this.#put()).metadata.uid;
  }

  async #put(): Promise<Lease> {
    const { api } = this.#cluster;
    const name = this.#name;
    const now = new Date().toISOString().replace("Z", "000Z");
    const body = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: {
        name,
        labels: { ...labelsOfDeployment(this.#deployment), "ambit-replica": this.#replica },
      },
      spec: { holderIdentity: this.#replica, leaseDurationSeconds: leaseSeconds, renewTime: now },
    };
    try {
      return await api.ask(
        { method: "POST", path: this.#cluster.path("leases", undefined, group), body },
        leaseSchema,
      );
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 409) throw error;
    }
    const path = this.#cluster.path("leases", name, group);
    const { metadata } = await api.ask({ path }, leaseSchema);
    const { resourceVersion } = metadata;
    return await api.ask(
      { method: "PUT", path, body: { ...body, metadata: { ...body.metadata, resourceVersion } } },
      leaseSchema,
    );
  }
}

/** The deployment's pods, whatever their state, and the leases of runners that live no more. */
export async function* leftoversIn(cluster: Cluster, config: KubernetesConfig): AsyncIterable<Leftover> {
  const leases = await leasesOf(cluster, config.deployment);
  const living = new Set(
    leases.filter((lease) => !isExpired(lease, Date.now())).map(({ spec }) => spec.holderIdentity),
  );
  for await (const { items } of cluster.pods(selectorOf(config.deployment))) {
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
