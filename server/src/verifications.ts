import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { capabilitySchema, HomeMissing, stateFolder, userFolder } from "@ambit/core";
import { z } from "zod";
import { replaceFile } from "./replace-file.js";
import { version } from "./version.js";

/** What `ambit verify` found of one capability, when, and which version it was. */
const verifiedCapabilitySchema = z.strictObject({
  capability: capabilitySchema,
  /** `proven`: every attack failed · `refused`: runs that need it are refused · anything else is a fault. */
  assurance: z.string(),
  /** Attacks that worked without the guard, and failed with it. */
  attacks: z.int(),
  /** Why it isn't proven. Absent for what is. */
  reason: z.string().optional(),
  fix: z.string().optional(),
  at: z.iso.datetime(),
  /** Of Ambit. */
  version: z.string(),
});

/** The last `ambit verify` of each capability of a sandbox on this host. */
export const verificationSchema = z.strictObject({
  sandbox: z.string(),
  capabilities: z.array(verifiedCapabilitySchema),
});
export type Verification = z.infer<typeof verificationSchema>;

/** The part of a report that is kept. */
interface Report {
  readonly backend: string;
  readonly at: string;
  readonly capabilities: readonly {
    readonly capability: string;
    readonly assurance: string;
    readonly reason: string;
    readonly fix?: string;
    readonly attacks: readonly { readonly verdict: string }[];
  }[];
}

/** Beside the evidence of probes: both say what was seen of this host, and are found out again. */
function verificationsFolder(): string {
  try {
    return join(userFolder("XDG_CACHE_HOME", ".cache"), "ambit", "verified");
  } catch (error) {
    // A user without a home has the data folder only.
    if (error instanceof HomeMissing) return stateFolder("verified");
    throw error;
  }
}

/** Files of this folder that are read: one for each sandbox. */
const maxFiles = 100;

/**
 * Keeps what `ambit verify` found, for `GET /host` of the servers of the same user. A capability that wasn't attacked this time
 * keeps what was found before.
 * @throws Error where the folder can't be written
 */
export async function keepVerification(report: Report, folder = verificationsFolder()): Promise<void> {
  const path = join(folder, `${encodeURIComponent(report.backend)}.json`);
  const attacked = report.capabilities.map(({ capability, assurance, reason, fix, attacks }) =>
    verifiedCapabilitySchema.parse({
      capability,
      assurance,
      attacks: attacks.filter(({ verdict }) => verdict === "proven").length,
      ...(assurance === "proven" ? {} : { reason, fix }),
      at: report.at,
      version: version(),
    }),
  );
  const names = attacked.map(({ capability }) => capability);
  const earlier = (await verificationIn(path))?.capabilities ?? [];
  const untouched = earlier.filter(({ capability }) => !names.includes(capability));
  const verification: Verification = { sandbox: report.backend, capabilities: [...untouched, ...attacked] };
  await replaceFile(path, JSON.stringify(verification));
}

/** What was kept. None where nothing was, or another version kept it in a form that can't be read. */
export async function keptVerifications(folder = verificationsFolder()): Promise<readonly Verification[]> {
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => name.endsWith(".json")).slice(0, maxFiles);
  const verifications = await Promise.all(files.map((name) => verificationIn(join(folder, name))));
  return verifications.filter((one) => one !== undefined);
}

async function verificationIn(path: string): Promise<Verification | undefined> {
  try {
    return verificationSchema.parse(JSON.parse(await readFile(path, "utf8")));
  } catch {
    return undefined;
  }
}
