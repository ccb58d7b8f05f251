import { type Log, SandboxFailed } from "@ambit/core/plugin";
import type { DaytonaConfig } from "./config.js";
import type { Ownership } from "./open/labels.js";
import type { Service } from "./platform/service.js";
import { reap } from "./reaper/reap.js";
import { claimReplica, defaultDataFolder, type Replica } from "./reaper/replica.js";

/** What this process has with Daytona: one client, one name, and the sessions that are open. */
export class Account {
  readonly config: DaytonaConfig;
  readonly dataFolder: string;
  readonly #live = new Set<string>();
  #service: Promise<Service> | undefined;
  #replica: Promise<Replica> | undefined;
  #reaping: NodeJS.Timeout | undefined;
  #log: Log | undefined;

  constructor(config: DaytonaConfig) {
    this.config = config;
    this.dataFolder = config.dataFolder ?? defaultDataFolder();
  }

  /** Undefined when the deployer has given none. */
  findKey(): string | undefined {
    return this.config.apiKey ?? (process.env[this.config.apiKeyVariable] || undefined);
  }

  /** @throws SandboxFailed when there is none. */
  key(): string {
    const key = this.findKey();
    if (key !== undefined) return key;
    throw new SandboxFailed(`Daytona: there is no key: ${this.howToGiveKey()}`);
  }

  howToGiveKey(): string {
    return `set ${this.config.apiKeyVariable} in the runner's environment, or sandbox-daytona's apiKey`;
  }

  service(): Promise<Service> {
    this.#service ??= this.#openService().catch((error: unknown) => {
      this.#service = undefined;
      throw error;
    });
    return this.#service;
  }

  /** Marks a session as open before anything is made for it, so that no reaper takes it. */
  async begin(session: string): Promise<Ownership> {
    const { deployment, ttlMinutes } = this.config;
    const replica = (await this.#claim()).name;
    this.#live.add(session);
    const expires = Math.ceil(Date.now() / 1_000) + ttlMinutes * 60;
    return { deployment, replica, session, expires };
  }

  end(session: string): void {
    this.#live.delete(session);
  }

  /**
   * Deletes what dead runners left: the first time now, then every `reapMinutes`. The last log given is written to.
   *
   * @throws ServiceFailure, SandboxFailed the first time.
   */
  async keepReaping(log: Log): Promise<void> {
    this.#log = log;
    if (this.#reaping !== undefined) return;
    const again = () =>
      void this.#reap().catch((error: unknown) =>
        this.#log?.warn({ error }, "what dead runners left couldn't be found"),
      );
    this.#reaping = setInterval(again, this.config.reapMinutes * 60_000).unref();
    await this.#reap();
  }

  async #reap(): Promise<void> {
    const { deployment, namePrefix, requestTimeoutMs } = this.config;
    const { deleted, failed } = await reap({
      service: await this.service(),
      deployment,
      namePrefix,
      replica: await this.#claim(),
      isLive: (session) => this.#live.has(session),
      limitMs: requestTimeoutMs,
      now: Date.now() / 1_000,
    });
    if (deleted.length > 0) this.#log?.info({ deleted }, "what a dead runner had left on Daytona is deleted");
    for (const { name, error } of failed)
      this.#log?.warn({ name, error }, "what a dead runner left couldn't be deleted");
  }

  async #openService(): Promise<Service> {
    const { apiUrl, target, requestTimeoutMs } = this.config;
    const apiKey = this.key();
    const { openSdkService } = await import("./platform/sdk-service.js");
    return openSdkService({ apiKey, apiUrl, target, requestTimeoutMs });
  }

  #claim(): Promise<Replica> {
    this.#replica ??= claimReplica(this.dataFolder).catch((error: unknown) => {
      this.#replica = undefined;
      throw error;
    });
    return this.#replica;
  }
}
