import type { IncomingMessage, ServerResponse } from "node:http";
import type { Log } from "@ambit/core";
import type { DurableRuns, Sealing } from "@ambit/durable";
import type { Runner } from "@ambit/runner";
import type { SharedQuotas } from "../tenants/shared-quotas.js";
import type { Tenancy } from "../tenants/tenancy.js";
import type { Bodies } from "./body.js";
import type { RunQueue } from "./runs/run-queue.js";

/** The context of the routes. */
export interface ServerContext {
  readonly runner: Runner;
  readonly log: Log;
  readonly bodies: Bodies;
  /** Callers with their own token. */
  readonly tenancy: Tenancy;
  /** The operator's token. If it is undefined and there are no tenants, everyone who reaches the server may use it. */
  readonly token: string | undefined;
  /** Whether the server listens on loopback, where requests of web pages must be refused. */
  readonly loopback: boolean;
  readonly allowedHosts: readonly string[];
  /** Undefined if no store is loaded: runs then end with their connection. */
  durable(): Promise<DurableServer | undefined>;
  /** Whether this host is being probed, or soon will be. */
  probing(): boolean;
  readonly version: string;
}

/** One request in Node's form: bodies are counted and responses written without a layer in between. */
export interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

/** What a store adds. */
export interface DurableServer {
  readonly durable: DurableRuns;
  readonly sealing: Sealing;
  readonly queue: RunQueue;
  readonly quotas: SharedQuotas;
}
