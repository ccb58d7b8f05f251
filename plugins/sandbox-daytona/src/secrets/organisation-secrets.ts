import { randomBytes } from "node:crypto";
import { type Ownership, ownershipSchema } from "@ambit/backend-kit";
import type { HiddenCredential } from "@ambit/core/plugin";
import { z } from "zod";
import { isPassing, ServiceFailure } from "../platform/failure.js";
import { withRetries } from "../platform/retries.js";
import type { Service, StoredSecret } from "../platform/service.js";

/** The secrets of one sandbox, for its next owner: without their values. */
export const mountedSecretsSchema = z.strictObject({
  /** The platform's ids. */
  ids: z.array(z.string()).readonly(),
  /** Variable of the sandbox → name of the organisation's secret. */
  mounts: z.record(z.string(), z.string()).readonly(),
  /** By the credential's name: its placeholder inside. */
  placeholders: z.record(z.string(), z.string()).readonly(),
});
export type MountedSecrets = Readonly<z.output<typeof mountedSecretsSchema>>;

/** Prefix of the names of Ambit's secrets. */
export function secretPrefix(namePrefix: string): string {
  return `${namePrefix.replaceAll("-", "_")}_secret_`.replace(/^(\d)/, "_$1");
}

/**
 * Puts each credential into the organisation's vault, for its hosts only: the sandbox sees a placeholder, and the
 * platform replaces it with the value in requests to those hosts.
 *
 * @throws ServiceFailure; anything stored by then is removed.
 */
export async function storeSecrets(
  service: Service,
  secrets: readonly HiddenCredential[],
  owner: Ownership,
  settings: { readonly namePrefix: string; readonly limitMs: number },
): Promise<MountedSecrets> {
  const ids: string[] = [];
  const mounts: Record<string, string> = {};
  const placeholders: Record<string, string> = {};
  try {
    for (const [index, { name: credential, value, hosts }] of secrets.entries()) {
      const name = `${secretPrefix(settings.namePrefix)}${randomBytes(12).toString("hex")}`;
      const secret = await service.createSecret({ name, value, hosts, description: JSON.stringify(owner) });
      ids.push(secret.id);
      mounts[`AMBIT_SECRET_${index + 1}`] = name;
      placeholders[credential] = secret.placeholder;
    }
    return { ids, mounts, placeholders };
  } catch (error) {
    await removeSecrets(service, ids, settings.limitMs);
    throw error;
  }
}

/** The owner of a secret; undefined for one that Ambit didn't make. */
export function ownerOfSecret({ description }: StoredSecret): Ownership | undefined {
  const json = z
    .string()
    .startsWith("{")
    .transform((text, context) => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue("isn't JSON");
        return z.NEVER;
      }
    });
  return json.pipe(ownershipSchema).safeParse(description).data;
}

export async function removeSecrets(
  service: Service,
  ids: readonly string[],
  limitMs: number,
): Promise<void> {
  for (const id of ids) await removeSecret(service, { id }, limitMs);
}

/** A secret that doesn't exist counts as removed. */
export async function removeSecret(
  service: Service,
  { id }: Pick<StoredSecret, "id">,
  limitMs: number,
): Promise<void> {
  try {
    await withRetries(
      () => service.deleteSecret(id),
      { retries: 4, limitMs },
      (failure) => isPassing(failure) || failure.kind === "conflict",
    );
  } catch (error) {
    if (!(error instanceof ServiceFailure) || error.kind !== "missing") throw error;
  }
}
