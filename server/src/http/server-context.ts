import type { IncomingMessage, ServerResponse } from "node:http";
import type { Log } from "@ambit/core";
import type { DurableRuns, Sealing } from "@ambit/durable";
import type { Runner } from "@ambit/runner";
import type { SharedQuotas } from "../tenants/shared-quotas.js";
import type { Tenancy } from "../tenants/tenancy.js";
import type { Bodies } from "./body.js";
import type { RunQueue } from "./runs/run-queue.js";

/** What the routes work with. */
export interface ServerContext {
  readonly runner: Runner;
  readonly log: Log;
  readonly bodies: Bodies;
  /** Callers with a token of their own. */
  readonly tenancy: Tenancy;
  /** The operator's. Undefined, and no tenant: everyone who reaches the server may use it. */
  readonly token: string | undefined;
  /** Whether the server listens on loopback, where web pages must be kept out. */
  readonly loopback: boolean;
  readonly allowedHosts: readonly string[];
  /** Undefined where no store is loaded: runs end with their connection. */
  durable(): Promise<DurableServer | undefined>;
  /** Whether this host is being probed, or is about to be. */
  probing(): boolean;
  readonly version: string;
}

/** One request, as Node has it: bodies are counted and answers are written without a layer in between. */
export interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

/** What a store brings. */
export interface DurableServer {
  readonly durable: DurableRuns;
  readonly sealing: Sealing;
  readonly queue: RunQueue;
  readonly quotas: SharedQuotas;
}
