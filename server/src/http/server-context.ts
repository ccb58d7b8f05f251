import type { IncomingMessage, ServerResponse } from "node:http";
import type { Log } from "@ambit/core";
import type { Runner } from "@ambit/runner";
import type { KeptFiles } from "../files/kept-files.js";
import type { Recording } from "../recording.js";
import type { Tenants } from "../tenants/caller.js";
import type { PageTokens } from "../tenants/page-grant.js";
import type { SharedQuotas } from "../tenants/shared-quotas.js";
import type { Bodies } from "./body.js";
import type { OperatorAccess } from "./caller/operator-access.js";
import type { Connections } from "./connections/connections.js";
import type { Console } from "./console/console.js";
import type { InnerApi } from "./doors/inner-api.js";
import type { Readiness } from "./health/health.js";
import type { UnreadTexts } from "./response/records.js";
import type { HostResponse } from "./route-schemas.js";
import type { Beginnings } from "./runs/beginnings.js";
import type { Readers } from "./runs/readers.js";
import type { RunQueue } from "./runs/run-queue.js";
import type { Terminals } from "./sessions/terminals.js";

/** The context of the routes. */
export interface ServerContext {
  readonly runner: Runner;
  readonly log: Log;
  readonly bodies: Bodies;
  readonly connections: Connections;
  /** The API for doors. */
  readonly inner: InnerApi;
  readonly readers: Readers;
  readonly terminals: Terminals;
  /** What left workspaces of runs. */
  readonly files: KeptFiles;
  readonly unread: UnreadTexts;
  /** Makes and reads tokens for pages of users' browsers. */
  readonly pageTokens: PageTokens;
  /** Callers with their own token. */
  readonly tenants: Tenants;
  readonly operator: OperatorAccess;
  /** The page for people. Undefined: not served. */
  readonly console: Console | undefined;
  /** Whether the server listens on loopback, where requests of web pages must be refused. */
  readonly loopback: boolean;
  readonly allowedHosts: readonly string[];
  /** Sites whose pages may call. */
  readonly origins: readonly string[];
  /** What signed URLs of files begin with. Empty: they are relative. */
  readonly publicUrl: string;
  readonly readiness: Readiness;
  /** Resolves once the store is open, if one is loaded. @throws StoreFailed when it can't be opened */
  served(): Promise<ServedRuns>;
  /** Whether the server is shutting down: it takes no new runs. */
  isDraining(): boolean;
  /** Whether this host is being probed, or soon will be. */
  probing(): boolean;
  /** Names this replica to callers that find its sessions again by it. */
  readonly replicaId: string;
  readonly version: string;
  /** This replica's host, as it is now. */
  host(): Promise<HostResponse>;
}

/** One request in Node's form: bodies are counted and responses written without a layer in between. */
export interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

/** The runs that are served, in a store or in memory. */
export interface ServedRuns extends Recording {
  readonly queue: RunQueue;
  readonly quotas: SharedQuotas;
  readonly beginnings: Beginnings;
}
