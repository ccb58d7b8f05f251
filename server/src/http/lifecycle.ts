import { randomUUID } from "node:crypto";
import { StoreFailed } from "@ambit/core";
import type { Ambit } from "../open.js";
import type { ServerState } from "./health/answers.js";
import { Readiness } from "./health/readiness.js";
import type { ServedRuns } from "./server-context.js";

/** How far the start or the end of a server has come. */
export class Lifecycle {
  /** Settles when the store is open, if one is loaded, or can't be opened. */
  readonly opening = Promise.withResolvers<ServedRuns>();
  readonly replicaId: string;
  readonly readiness: Readiness;
  /** Whether the server is shutting down: it takes no new runs. */
  isDraining = false;
  /** Whether this host isn't being probed yet, but will be. */
  waitsToProbe = true;

  constructor(readonly ambit: Pick<Ambit, "settings" | "registry" | "log">) {
    // Those that need it await it.
    this.opening.promise.catch(() => undefined);
    this.replicaId = ambit.settings.server.replicaId ?? randomUUID();
    this.readiness = new Readiness({
      served: () => this.served(),
      log: ambit.log,
      isDraining: () => this.isDraining,
    });
  }

  /** @throws StoreFailed when it can't be opened */
  async served(): Promise<ServedRuns> {
    try {
      return await this.opening.promise;
    } catch (cause) {
      throw new StoreFailed("The store can't be opened: the runner's log has the cause.", { cause });
    }
  }

  /** Whether this host is being probed, or soon will be. */
  get probing(): boolean {
    return this.waitsToProbe || this.ambit.registry.probing;
  }

  /** What the server says of itself. */
  async state(): Promise<ServerState> {
    const ready = await this.readiness.look();
    return { probing: this.probing, replicaId: this.replicaId, ready };
  }
}
