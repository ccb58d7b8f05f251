import { randomBytes } from "node:crypto";
import { type Ownership, ownershipSchema } from "@ambit/backend-kit";
import type { HiddenCredential } from "@ambit/core/plugin";
import { z } from "zod";
import { isPassing, ServiceFailure } from "../platform/failure.js";
import { withPatience } from "../platform/patience.js";
import type { Service, StoredSecret } from "../platform/service.js";

export interface MountedSecrets {
  /** Variable of the sandbox → name of the organisation's secret. */
  readonly mounts: Readonly<Record<string, string>>;
  /** By the credential's name: what stands inside instead of the value. */
  readonly placeholders: Readonly<Record<string, string>>;
  /** Safe to call twice. */
  remove(): Promise<void>;
}

/** What our secrets' names begin with. */
export function secretPrefix(namePrefix: string): string {
  return `${namePrefix.replaceAll("-", "_")}_secret_`.replace(/^(\d)/, "_$1");
}

/**
 * Puts each credential into the organisation's vault, for its hosts only: the sandbox sees a placeholder, and the
 * platform puts the value in its place on the way to those hosts.
 *
 * @throws ServiceFailure; what was stored by then is removed.
 */
export async function storeSecrets(
  service: Service,
  secrets: readonly HiddenCredential[],
  owner: Ownership,
  settings: { readonly namePrefix: string; readonly limitMs: number },
): Promise<MountedSecrets> {
  const stored: StoredSecret[] = [];
  const remove = async () => {
    for (let secret = stored.pop(); secret !== undefined; secret = stored.pop()) {
      await removeSecret(service, secret, settings.limitMs);
    }
  };
  const mounts: Record<string, string> = {};
  const placeholders: Record<string, string> = {};
  try {
    for (const [index, { name: credential, value, hosts }] of secrets.entries()) {
      const name = `${secretPrefix(settings.namePrefix)}${randomBytes(12).toString("hex")}`;
      const secret = await service.createSecret({ name, value, hosts, description: JSON.stringify(owner) });
      stored.push(secret);
      mounts[`AMBIT_SECRET_${index + 1}`] = name;
      placeholders[credential] = secret.placeholder;
    }
    return { mounts, placeholders, remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Whose a secret is; undefined for what isn't ours, whole. */
export function ownerOfSecret({ description }: StoredSecret): Ownership | undefined {
  const json = z
    .string()
    .startsWith("{")
    .transform((text, context) => {
      try {
        return JSON.parse(text);
      } catch {
        context.addIssue("is no JSON");
        return z.NEVER;
      }
    });
  return json.pipe(ownershipSchema).safeParse(description).data;
}

/** A secret that isn't there is removed. */
export async function removeSecret(service: Service, { id }: StoredSecret, limitMs: number): Promise<void> {
  try {
    await withPatience(
      () => service.deleteSecret(id),
      { retries: 4, limitMs },
      (failure) => isPassing(failure) || failure.kind === "conflict",
    );
  } catch (error) {
    if (!(error instanceof ServiceFailure) || error.kind !== "missing") throw error;
  }
}
