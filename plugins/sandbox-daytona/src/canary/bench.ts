import type { RemoteSandbox } from "@ambit/bridge";
import type { Boundary, Log } from "@ambit/core/plugin";
import type { Account } from "../account.js";
import type { Claim } from "../claims.js";
import type { Outcomes } from "../inside/attempts.js";
import type { StartedMachine } from "../open/start-machine.js";

/** The two sandboxes of a canary: what works in the open one, and must fail in the limited one. */
export interface Bench {
  readonly account: Account;
  readonly open: StartedMachine;
  /** What the open one reaches. */
  readonly control: Outcomes;
  readonly limited: StartedMachine;
  readonly sandbox: RemoteSandbox;
  /** Why the limited one has no limits of its network; undefined where it has. */
  readonly unrestricted: unknown;
  /** Why no secret could be stored for it; undefined where one is. */
  readonly withoutSecret: unknown;
  readonly decoys: Decoys;
  readonly signal: AbortSignal;
}

/** Texts that are looked for, each random and in one place. */
export interface Decoys {
  /** In the environment that the platform gives to what it starts itself. */
  readonly variable: string;
  /** The value of a secret of the organisation. */
  readonly secret: string;
  /** On the command line of a process in the open sandbox. */
  readonly process: string;
}

export interface Trial {
  readonly shows: readonly Claim[];
  /** What was seen, by claim. Throws for all of them; a claim that isn't in the answer wasn't seen. */
  run(bench: Bench): Promise<Partial<Record<Claim, string>>>;
}

/** No limit that a boundary can set. */
export const unlimited: Boundary = {
  network: { mode: "on", rules: [] },
  filesystem: { mode: "on", readable: [], writable: [], denied: [] },
  resources: {},
  secrets: "visible",
  enforcement: "strict",
};

/** Its findings tell what went wrong. */
export const quiet: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};
