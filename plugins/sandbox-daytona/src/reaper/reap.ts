import { labelsOfDeployment, type Ownership, ownershipOf } from "../open/labels.js";
import { deleteMachine } from "../platform/remote-machine.js";
import type { Service } from "../platform/service.js";
import { ownerOfSecret, removeSecret, secretPrefix } from "../secrets/organisation-secrets.js";
import type { Replica } from "./replica.js";

export interface ReapOptions {
  readonly service: Service;
  readonly deployment: string;
  readonly namePrefix: string;
  readonly replica: Replica;
  /** Sessions of this process that are open, or being opened. */
  isLive(session: string): boolean;
  readonly limitMs: number;
  /** Seconds since the epoch. */
  readonly now: number;
}

export interface Reaped {
  readonly deleted: readonly string[];
  /** What couldn't be deleted, and stays for the next time. */
  readonly failed: readonly { readonly name: string; readonly error: unknown }[];
}

/**
 * Deletes what nobody needs: of dead runners of this host, and whatever has outlived its time. Never what another live
 * runner has open. The platform's own time to live is behind it.
 *
 * @throws ServiceFailure when the platform doesn't list.
 */
export async function reap(options: ReapOptions): Promise<Reaped> {
  const { service, deployment, namePrefix, limitMs } = options;
  const deleted: string[] = [];
  const failed: { name: string; error: unknown }[] = [];
  const remove = async (name: string, owner: Ownership | undefined, action: () => Promise<void>) => {
    if (owner?.deployment !== deployment || !(await isOrphan(owner, options))) return;
    try {
      await action();
      deleted.push(name);
    } catch (error) {
      failed.push({ name, error });
    }
  };
  for await (const machine of service.list(labelsOfDeployment(deployment))) {
    await remove(machine.name, ownershipOf(machine.labels), () => deleteMachine(machine, limitMs));
  }
  for await (const secret of service.listSecrets(secretPrefix(namePrefix))) {
    await remove(secret.name, ownerOfSecret(secret), () => removeSecret(service, secret, limitMs));
  }
  return { deleted, failed };
}

async function isOrphan(owner: Ownership, { replica, isLive, now }: ReapOptions): Promise<boolean> {
  if (owner.replica === replica.name) return !isLive(owner.session);
  return owner.expires < now || (await replica.isDead(owner.replica));
}
