import type { WorldHost } from "./options.js";

/** A running loopback Daytona. Everything it started ends with `close()`, or with this process. */
export interface LoopbackDaytona {
  /** The SDK's `apiUrl`: `http://127.0.0.1:<port>/api`. */
  readonly apiUrl: string;
  /** The SDK's `apiKey`. */
  readonly apiKey: string;
  /** The limits that this machine enforces, of `memory`, `cpu`, `pids` and `devices`. It always enforces disk. */
  readonly limits: readonly string[];
  readonly faults: Faults;
  readonly world: World;
  /** All existing sandboxes, including stopped and failed ones. */
  sandboxes(): readonly LoopbackSandboxView[];
  /** The existing organisation secrets with their values, for comparison with traffic and files. */
  secrets(): readonly LoopbackSecretView[];
  /** The organisation's snapshots. */
  snapshots(): readonly LoopbackSnapshotView[];
  /** Every request that arrived, oldest first. */
  requests(): readonly ApiRequest[];
  /** May be called twice. No process, network namespace, mount, cgroup, socket or folder remains. */
  close(): Promise<void>;
}

export interface LoopbackSandboxView {
  readonly id: string;
  readonly name: string;
  /** `creating`, `started`, `stopped`, `error`, … as on the wire. */
  readonly state: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly snapshot: string | undefined;
  /** The settings that are applied to its network now, which an `ignored` override makes differ from the wire's. */
  readonly network: AppliedNetwork;
  /** Its address on the loopback's network, 10.98.x.2. */
  readonly address: string;
  /** The pid, on this machine, of the first process in its pid namespace. Undefined unless it is started. */
  readonly pid: number | undefined;
  /** When it was last reported active, in milliseconds since the epoch. */
  readonly lastActivityAt: number;
}

export interface AppliedNetwork {
  readonly blockAll: boolean;
  /** IPv4 ranges. Undefined: not limited by address. */
  readonly allowList: readonly string[] | undefined;
  /** Names, including `*.suffix`. Undefined: not limited by name. */
  readonly domains: readonly string[] | undefined;
}

export interface LoopbackSecretView {
  readonly id: string;
  readonly name: string;
  readonly value: string;
  /** The value's replacement in the sandbox's environment. */
  readonly placeholder: string;
  readonly hosts: readonly string[];
}

export interface LoopbackSnapshotView {
  readonly name: string;
  /** `active`, `inactive`. */
  readonly state: string;
  /** Whether it was made from a sandbox. */
  readonly isOfSandbox: boolean;
}

export interface ApiRequest {
  readonly method: string;
  /** Path and query, from the server's root: `/api/sandbox?limit=2`, `/toolbox/<id>/process/execute`. */
  readonly url: string;
  /** The response's status; 0 while the request is in progress, or if the connection was cut. */
  readonly status: number;
}

/** Faults of the platform. Each applies to what follows the call, unless stated otherwise. */
export interface Faults {
  /** Responds to the next matching requests with an error, or cuts them off. The oldest matching fault is used first. */
  answer(fault: RequestFault): void;
  /**
   * The fate of the next created sandbox. `never_starts`: stays `creating`. `error` and
   * `build_failed`: reaches that state instead of `started`, with an `errorReason`. Each call is for one sandbox.
   */
  nextSandbox(fate: "never_starts" | "error" | "build_failed"): void;
  /** Stops a sandbox like auto-stop during a run: kills its processes and ends its log streams. */
  stop(idOrName: string): Promise<void>;
  /** Kills a sandbox and leaves it in `error`. */
  crash(idOrName: string): Promise<void>;
  /** From now on the key is refused with 401. */
  expireKey(): void;
  renewKey(): void;
  /** A snapshot that wasn't used for weeks: nothing can be made from it. */
  deactivateSnapshot(idOrName: string): void;
  /** Cuts every open log stream like a lost connection, without a close frame. Returns their number. */
  cutLogStreams(): number;
  /** Removes all unused `answer` and `nextSandbox`, and renews the key. */
  clear(): void;
}

export interface RequestFault {
  /** Default: any. */
  readonly method?: string;
  /** Matched against path and query. A string must equal the path without the query. */
  readonly path: RegExp | string;
  /** A status, or `cut`: the connection is closed without a response. */
  readonly status: number | "cut";
  /** Default: the status's name. */
  readonly message?: string;
  /** As in the error's body, such as `SESSION_ENDED`. */
  readonly code?: string;
  /** A 429 gets `X-RateLimit-*` and `Retry-After-sandbox-create: 1` unless these headers are given. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The number of requests that it applies to. Default: 1. */
  readonly times?: number;
  /** The request is executed first, so only its response is lost. Default: false. Not for WebSockets. */
  readonly afterwards?: boolean;
}

/** The hosts outside. Only sandboxes of this loopback have a route to their network. */
export interface World {
  hosts(): readonly WorldHostView[];
  /** Resolves when it listens. Rejects if the name or address is in use. */
  add(host: WorldHost): Promise<WorldHostView>;
  /** HTTP requests that arrived at hosts without `forwardTo`, oldest first. */
  requests(): readonly WorldRequest[];
  /** Every TCP connection and UDP datagram that arrived at a host, oldest first. */
  arrivals(): readonly WorldArrival[];
  /** All names that sandboxes asked the resolver for, oldest first, existing or not. */
  queries(): readonly { readonly sandboxId: string; readonly name: string }[];
  /** Clears the records. */
  clear(): void;
}

export interface WorldHostView {
  readonly name: string;
  readonly address: string;
  readonly ports: readonly number[];
}

export interface WorldRequest {
  readonly host: string;
  readonly port: number;
  /** Undefined if the sandbox no longer exists. */
  readonly sandboxId: string | undefined;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

export interface WorldArrival {
  readonly host: string;
  readonly port: number;
  readonly protocol: "tcp" | "udp";
  readonly sandboxId: string | undefined;
}
