import { type Leftover, labelsOfDeployment, type Ownership, ownershipOf } from "@ambit/backend-kit";
import type { DaytonaConfig } from "./config.js";
import { deleteMachine } from "./open/remote-machine.js";
import { ServiceFailure } from "./platform/failure.js";
import { withRetries } from "./platform/retries.js";
import type { Service } from "./platform/service.js";
import { ownerOfSecret, removeSecret, secretPrefix } from "./secrets/organisation-secrets.js";

/** The name of a session's sandbox, unique in the organisation. */
export function machineName({ namePrefix }: { readonly namePrefix: string }, session: string): string {
  return `${namePrefix}-${session}`;
}

/**
 * Whether the sandbox still has this owner. Another runner changes its labels before it takes it over.
 *
 * @throws ServiceFailure when that can't be determined, or the sandbox is gone.
 */
export async function isOwnedBy(
  account: { readonly config: { readonly requestTimeoutMs: number }; service(): Promise<Service> },
  id: string,
  owner: Ownership,
): Promise<boolean> {
  const service = await account.service();
  const limitMs = account.config.requestTimeoutMs;
  const { labels } = await withRetries(() => service.get(id), { retries: 2, limitMs });
  const found = ownershipOf(labels);
  return found?.replica === owner.replica && found.session === owner.session && found.fence === owner.fence;
}

/**
 * The deployment's sandboxes and secrets.
 *
 * @throws ServiceFailure when the platform can't list them.
 */
export async function* leftoversOn(account: {
  readonly config: DaytonaConfig;
  service(): Promise<Service>;
}): AsyncIterable<Leftover> {
  const { deployment, namePrefix, requestTimeoutMs: limitMs } = account.config;
  const service = await account.service();
  for await (const machine of service.list(labelsOfDeployment(deployment))) {
    const { id, name, labels } = machine;
    const owner = ownershipOf(labels);
    const remove = async () => {
      // Another runner may have taken it over since it was listed.
      if (owner?.fence === undefined || (await isOwnedBy(account, id, owner))) await machine.delete();
    };
    yield { name, owner, remove: () => deleteMachine({ name, delete: remove }, limitMs) };
  }
  for await (const secret of service.listSecrets(secretPrefix(namePrefix))) {
    const { name } = secret;
    const owner = ownerOfSecret(secret);
    // It goes with its sandbox, which another runner than the one that made both may have by now.
    if (owner?.fence !== undefined && (await isThere(service, machineName(account.config, owner.session))))
      continue;
    yield { name, owner, remove: () => removeSecret(service, secret, limitMs) };
  }
}

async function isThere(service: Service, name: string): Promise<boolean> {
  try {
    await service.get(name);
    return true;
  } catch (error) {
    if (error instanceof ServiceFailure && error.kind === "missing") return false;
    throw error;
  }
}
