import { type Ownership, ownershipOf } from "@ambit/backend-kit";
import { withRetries } from "../platform/retries.js";
import type { Service } from "../platform/service.js";

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
