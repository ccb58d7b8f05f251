import type { NetworkSettings, ResourceSettings } from "../limits.js";

/** The operations of Daytona that this plugin needs; the SDK implements them. Every method throws `ServiceFailure`. */
export interface Service {
  /**
   * Resolves when the sandbox has started.
   *
   * @param timeoutMs for the whole operation; a sandbox that was created by then still exists.
   */
  create(order: SandboxOrder, timeoutMs: number): Promise<Machine>;
  get(idOrName: string): Promise<Machine>;
  /** Sandboxes with all of these labels, in any order. */
  list(labels: Readonly<Record<string, string>>): AsyncIterable<ListedMachine>;
  createSecret(secret: SecretOrder): Promise<StoredSecret>;
  /** Secrets whose name has this prefix. */
  listSecrets(prefix: string): AsyncIterable<StoredSecret>;
  deleteSecret(id: string): Promise<void>;
  /** Undefined where the organisation has none of this id or name. */
  snapshot(idOrName: string): Promise<StoredSnapshot | undefined>;
  /** Snapshots whose name has this prefix. */
  listSnapshots(prefix: string): AsyncIterable<StoredSnapshot>;
  deleteSnapshot(id: string): Promise<void>;
}

export interface StoredSnapshot {
  readonly id: string;
  readonly name: string;
  /** `active`: sandboxes can be made from it. `inactive`, `error`, `pulling`, … */
  readonly state: string;
  readonly errorReason: string | undefined;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

export interface SandboxOrder {
  /** Unique in the organisation. */
  readonly name: string;
  readonly source: { readonly snapshot?: string } | { readonly image: string };
  readonly resources: ResourceSettings;
  readonly network: NetworkSettings;
  readonly labels: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  /** Variable → name of an organisation's secret, whose placeholder it holds. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly autoStopMinutes: number;
  readonly ttlMinutes: number;
}

export interface SecretOrder {
  /** `[a-zA-Z_][a-zA-Z0-9_-]*`, unique in the organisation. */
  readonly name: string;
  readonly value: string;
  readonly description: string;
  /** Never empty: a secret without hosts is sent anywhere. */
  readonly hosts: readonly string[];
}

export interface StoredSecret {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  /** The placeholder in a sandbox that replaces the value. */
  readonly placeholder: string;
  readonly hosts: readonly string[];
}

export interface ListedMachine {
  readonly id: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  delete(): Promise<void>;
}

/** A sandbox as the platform describes it. */
export interface MachineView {
  /** `started`, `stopped`, `error`, … */
  readonly state: string;
  readonly errorReason: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly isPublic: boolean;
  readonly networkBlockAll: boolean;
  readonly networkAllowList: readonly string[];
  readonly domainAllowList: readonly string[];
  readonly cpu: number;
  /** GiB. */
  readonly memory: number;
  /** GiB. */
  readonly disk: number;
  readonly autoStopMinutes: number | undefined;
  /** Minutes after the stop; 0 is at once, below 0 is never. */
  readonly autoDeleteMinutes: number | undefined;
  readonly hasTimeToLive: boolean;
  readonly supervisor: string;
}

/** One sandbox on the platform. */
export interface Machine extends ListedMachine {
  /** The address of its files and processes, without a slash at the end. */
  readonly toolboxUrl: string;
  refresh(): Promise<MachineView>;
  /** Replaces all labels. */
  setLabels(labels: Readonly<Record<string, string>>): Promise<void>;
  waitUntilStarted(timeoutMs: number): Promise<void>;
  /** Counts as activity, so that it isn't stopped. */
  touch(): Promise<void>;
  setNetwork(settings: NetworkChange): Promise<void>;
  /** Runs a shell line; returns standard output and error together when it has ended. */
  execute(line: string, timeoutMs: number): Promise<{ readonly exitCode: number; readonly output: string }>;
  startSession(id: string): Promise<void>;
  /** Starts a shell line in the session, and resolves with its id at once. */
  startInSession(session: string, line: string): Promise<string>;
  /** The platform adds a line feed. */
  input(session: string, command: string, text: string): Promise<void>;
  /** Ends what runs in it, but maybe not a process that has left its group: that ends with the machine. */
  endSession(session: string): Promise<void>;
  upload(path: string, content: Uint8Array, signal: AbortSignal): Promise<void>;
  /**
   * Makes a snapshot of its files, and resolves when the platform has ended that, well or not.
   * @param timeoutMs for the whole operation
   */
  makeSnapshot(name: string, timeoutMs: number): Promise<void>;
}

/** An empty list removes that limit. */
export interface NetworkChange {
  readonly networkBlockAll?: boolean;
  readonly networkAllowList?: string;
  readonly domainAllowList?: string;
}
