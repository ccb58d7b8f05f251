import { createHash } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Finding, findingSchema } from "@ambit/core/plugin";
import { z } from "zod";
import type { Account } from "../account.js";
import { claimsOf } from "../claims.js";

const entrySchema = z.strictObject({ at: z.number(), until: z.number(), findings: z.array(findingSchema) });

/**
 * Stores what a canary found, since a canary costs money. The record is keyed by everything that the findings depend
 * on, including a hash of the API key.
 */
export class FindingStore {
  readonly #account: Account;

  constructor(account: Account) {
    this.#account = account;
  }

  /** The findings that are still valid, and their time. An unreadable file counts as none: the canary runs again. */
  async find(key: string): Promise<readonly Finding[] | undefined> {
    let text: string;
    try {
      text = await readFile(this.#path(key), "utf8");
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
    const entry = z
      .string()
      .transform((json, context) => {
        try {
          return JSON.parse(json);
        } catch {
          context.addIssue("isn't JSON");
          return z.NEVER;
        }
      })
      .pipe(entrySchema)
      .safeParse(text).data;
    if (entry === undefined || entry.until <= Date.now()) return undefined;
    const at = new Date(entry.at).toISOString();
    return entry.findings.map((finding) =>
      finding.proven ? { ...finding, how: `${finding.how} (seen by the canary of ${at})` } : finding,
    );
  }

  /** @param complete whether they stay valid for hours; otherwise the canary is repeated soon. */
  async keep(key: string, findings: readonly Finding[], complete: boolean): Promise<void> {
    const { cacheHours, retryMinutes } = this.#account.config.canary;
    const until = Date.now() + (complete ? cacheHours * 3_600_000 : retryMinutes * 60_000);
    const path = this.#path(key);
    await mkdir(this.#account.dataFolder, { recursive: true, mode: 0o700 });
    const fresh = `${path}.${process.pid}`;
    await writeFile(fresh, JSON.stringify({ at: Date.now(), until, findings }), { mode: 0o600 });
    await rename(fresh, path);
  }

  /** An open sandbox contradicted the findings. */
  async forget(key: string): Promise<void> {
    await rm(this.#path(key), { force: true });
  }

  #path(key: string): string {
    const { apiUrl, target, snapshot, image, canary, bridge, wildcards, maximum } = this.#account.config;
    // Another version may claim more.
    const claims = claimsOf(this.#account.config);
    const settings = [apiUrl, target, snapshot, image, canary, bridge, wildcards, maximum, claims];
    const facts = JSON.stringify([key, ...settings]);
    const hash = createHash("sha256").update(facts).digest("hex");
    return join(this.#account.dataFolder, `canary-${hash}.json`);
  }
}
