import type * as kit from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
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

export type Trial = kit.Trial<Bench, Claim>;
