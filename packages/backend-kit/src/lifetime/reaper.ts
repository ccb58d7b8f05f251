import { type Log, lazy } from "@ambit/core/plugin";
import { z } from "zod";
import { claimReplica, type Replica } from "./replica.js";

/**
 * The owner of a sandbox, or of a secret made for one. Stored on the platform and readable by all its users, so it
 * contains no secrets.
 */
export const ownershipSchema = z.strictObject({
  deployment: z.string().min(1),
  /** Id of one process of a runner. */
  replica: z.string().min(1),
  /** The spec's id. */
  session: z.string().min(1),
  /** Seconds since the epoch, after which it is no longer needed. */
  expires: z.coerce.number().int(),
  /** Fence of an owner that another one may follow. Absent: it ends with its replica. */
  fence: z.coerce.number().int().optional(),
});
export type Ownership = Readonly<z.output<typeof ownershipSchema>>;

/** `ambit` marks Ambit's sandboxes; the other labels hold the fields of `Ownership`. */
const prefix = "ambit-";

export function labelsOf({ deployment, ...owner }: Ownership): Readonly<Record<string, string>> {
  const fields = Object.entries(owner).map(([field, value]) => [`${prefix}${field}`, String(value)]);
  return { ...labelsOfDeployment(deployment), ...Object.fromEntries(fields) };
}

/** The labels by which every sandbox of a deployment is found. */
export function labelsOfDeployment(deployment: string): Readonly<Record<string, string>> {
  return { ambit: "sandbox", [`${prefix}deployment`]: deployment };
}

/** Undefined unless all labels are Ambit's. */
export function ownershipOf(labels: Readonly<Record<string, string>>): Ownership | undefined {
  if (labels.ambit !== "sandbox") return undefined;
  // A platform may add labels of an image: only Ambit's count.
  const fields = Object.keys(ownershipSchema.shape)
    .filter((field) => labels[`${prefix}${field}`] !== undefined)
    .map((field) => [field, labels[`${prefix}${field}`]]);
  return ownershipSchema.safeParse(Object.fromEntries(fields)).data;
}

/** The characters of a layer's name (`SandboxBackend.layers`) that say whose it is. */
export const layerProjectLength = 16;

/** Something on the platform that may have outlived its session. */
export interface Leftover {
  readonly name: string;
  /** Undefined for what isn't Ambit's, which isn't touched. */
  readonly owner: Ownership | undefined;
  /** Must succeed if it no longer exists. */
  remove(): Promise<void>;
}

export interface ReaperOptions {
  /** In logs and errors: `Daytona`. */
  readonly platform: string;
  /** The plugin whose setting `dataFolder` names the folder. */
  readonly plugin: string;
  readonly dataFolder: string;
  /** Runners of other deployments share the platform, but not these sandboxes. */
  readonly deployment: string;
  readonly ttlMinutes: number;
  /**
   * Milliseconds that leftovers of a dead runner of this host wait for a takeover, if their owner has a fence. Default
   * 0.
   */
  readonly takeoverMinutes?: number;
  readonly reapMinutes: number;
  /** Everything of this deployment that the platform lists. */
  leftovers(): AsyncIterable<Leftover>;
  /** Removes layers that are too old or too many. Called after each search for leftovers. Default: none are kept. */
  evictLayers?(): Promise<void>;
}

export interface Reaped {
  readonly deleted: readonly string[];
  /** What couldn't be deleted, and is left for the next time. */
  readonly failed: readonly { readonly name: string; readonly error: unknown }[];
}

/**
 * Deletes what no session needs: leftovers of dead runners of this host at once, of other runners after their time to
 * live. Never deletes what a live runner of this host has open. The platform's own time to live, if any, is a second
 * safeguard.
 */
export class Reaper {
  readonly #options: ReaperOptions;
  /** Open sessions with their count: one that is taken over again is opened before it is closed. */
  readonly #live = new Map<string, number>();
  /** Leftovers that wait for a takeover, with the start of the wait by `performance.now()`, by name. */
  #waiting = new Map<string, number>();
  readonly #replica: () => Promise<Replica>;
  #keepsReaping = false;
  #log: Log | undefined;

  constructor(options: ReaperOptions) {
    this.#options = options;
    this.#replica = lazy(() => claimReplica(options.dataFolder, options.plugin));
  }

  /**
   * Marks a session as open before anything is created for it, so that no reaper deletes it.
   *
   * @returns what the platform is to keep beside everything that is made for it.
   * @throws SandboxFailed when the data folder can't be used.
   */
  async begin(session: string, fence?: number): Promise<Ownership> {
    const { deployment, ttlMinutes } = this.#options;
    const replica = (await this.#replica()).name;
    this.#live.set(session, (this.#live.get(session) ?? 0) + 1);
    const expires = Math.ceil(Date.now() / 1_000) + ttlMinutes * 60;
    return { deployment, replica, session, expires, ...(fence === undefined ? {} : { fence }) };
  }

  /**
   * The same for what `make` creates, which calls `end` once it is deleted. If `make` fails, it must leave nothing
   * behind. It may try several times: the end of what it gave up doesn't count.
   *
   * @throws what `make` throws.
   */
  async holding<Made>(
    session: string,
    make: (owner: Ownership, end: () => void) => Promise<Made>,
  ): Promise<Made> {
    const owner = await this.begin(session);
    let isMade = false;
    const end = () => {
      if (isMade) this.end(session);
    };
    try {
      const made = await make(owner, end);
      isMade = true;
      return made;
    } catch (error) {
      this.end(session);
      throw error;
    }
  }

  end(session: string): void {
    const open = (this.#live.get(session) ?? 0) - 1;
    if (open > 0) this.#live.set(session, open);
    else this.#live.delete(session);
  }

  /**
   * Reaps and evicts layers now, then again `reapMinutes` after each search. Writes to the log that was passed last.
   *
   * @throws SandboxFailed, and what `leftovers` throws, the first time.
   */
  async keepReaping(log: Log): Promise<void> {
    this.#log = log;
    if (this.#keepsReaping) return;
    this.#keepsReaping = true;
    await this.#reapAndLog().finally(() => this.#reapLater());
  }

  /** Once the last search has ended: on a slow platform, two would remove the same leftovers. */
  #reapLater(): void {
    const again = () =>
      this.#reapAndLog()
        .catch((error: unknown) => this.#log?.warn({ error }, "leftovers of dead runners couldn't be listed"))
        .finally(() => this.#reapLater());
    setTimeout(again, this.#options.reapMinutes * 60_000).unref();
  }

  /** The same during an opening, which must not wait for leftovers of others: a failure is logged. */
  reapInBackground(log: Log): void {
    this.keepReaping(log).catch((error: unknown) =>
      log.warn({ error }, "leftovers of dead runners couldn't be listed"),
    );
  }

  async reap(): Promise<Reaped> {
    const replica = await this.#replica();
    const deleted: string[] = [];
    const failed: { name: string; error: unknown }[] = [];
    const waiting = new Map<string, number>();
    for await (const { name, owner, remove } of this.#options.leftovers()) {
      if (owner === undefined || !(await this.#isOrphan(owner, replica))) continue;
      if (owner.fence !== undefined && owner.expires >= Date.now() / 1_000) {
        const since = this.#waiting.get(name) ?? performance.now();
        waiting.set(name, since);
        if (performance.now() - since < (this.#options.takeoverMinutes ?? 0) * 60_000) continue;
      }
      try {
        await remove();
        deleted.push(name);
      } catch (error) {
        failed.push({ name, error });
      }
    }
    this.#waiting = waiting;
    return { deleted, failed };
  }

  async #isOrphan(owner: Ownership, replica: Replica): Promise<boolean> {
    if (owner.deployment !== this.#options.deployment) return false;
    if (owner.replica === replica.name) return !this.#live.has(owner.session);
    const state = await replica.stateOf(owner.replica);
    return state === "dead" || (state === "unknown" && owner.expires < Date.now() / 1_000);
  }

  async #reapAndLog(): Promise<void> {
    const { deleted, failed } = await this.reap();
    const { platform } = this.#options;
    if (deleted.length > 0) {
      this.#log?.info({ deleted }, `what a dead runner had left on ${platform} is deleted`);
    }
    for (const { name, error } of failed) {
      this.#log?.warn({ name, error }, "what a dead runner left couldn't be deleted");
    }
    try {
      await this.#options.evictLayers?.();
    } catch (error) {
      this.#log?.warn({ error }, "old layers couldn't be removed");
    }
  }
}
