import { type Leftover, labelsOfDeployment, ownershipOf } from "@ambit/backend-kit";
import type { DaytonaConfig } from "./config.js";
import { isOwnedBy, machineName } from "./open/owner.js";
import { deleteMachine } from "./open/remote-machine.js";
import { ServiceFailure } from "./platform/failure.js";
import type { Service } from "./platform/service.js";
import { ownerOfSecret, removeSecret, secretPrefix } from "./secrets/organisation-secrets.js";

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
