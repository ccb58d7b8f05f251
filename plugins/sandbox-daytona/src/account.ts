import { defaultDataFolder, Reaper } from "@ambit/backend-kit";
import { lazy, SandboxFailed } from "@ambit/core/plugin";
import type { DaytonaConfig } from "./config.js";
import { DaytonaLayers } from "./layers/daytona-layers.js";
import { leftoversOn } from "./leftovers.js";
import type { Service } from "./platform/service.js";

/** State that this process shares for Daytona: one client, one reaper, and what is known of its layers. */
export class Account {
  readonly config: DaytonaConfig;
  readonly dataFolder: string;
  readonly service: () => Promise<Service> = lazy(() => this.#openService());
  readonly reaper: Reaper;
  readonly layers: DaytonaLayers;

  constructor(config: DaytonaConfig) {
    this.config = config;
    this.layers = new DaytonaLayers(config, this.service);
    this.dataFolder = config.dataFolder ?? defaultDataFolder("daytona");
    const { deployment, ttlMinutes, takeoverMinutes, reapMinutes } = config;
    this.reaper = new Reaper({
      platform: "Daytona",
      plugin: "sandbox-daytona",
      dataFolder: this.dataFolder,
      deployment,
      ttlMinutes,
      takeoverMinutes,
      reapMinutes,
      leftovers: () => leftoversOn(this),
      evictLayers: () => this.layers.evict(),
    });
  }

  /** Undefined if the deployer hasn't set one. */
  findKey(): string | undefined {
    return this.config.apiKey ?? (process.env[this.config.apiKeyVariable] || undefined);
  }

  /** @throws SandboxFailed if there is none. */
  key(): string {
    const key = this.findKey();
    if (key !== undefined) return key;
    throw new SandboxFailed(`Daytona: no API key is set: ${this.keyInstructions()}`);
  }

  keyInstructions(): string {
    return `set ${this.config.apiKeyVariable} in the runner's environment, or sandbox-daytona's apiKey`;
  }

  async #openService(): Promise<Service> {
    const { apiUrl, target, requestTimeoutMs } = this.config;
    const apiKey = this.key();
    const { openSdkService } = await import("./platform/sdk-service.js");
    return openSdkService({ apiKey, apiUrl, target, requestTimeoutMs });
  }
}
