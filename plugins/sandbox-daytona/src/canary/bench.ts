import type { Reached } from "@ambit/attacks/inside";
import type * as kit from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import type { Account } from "../account.js";
import type { Claim } from "../claims.js";
import type { StartedMachine } from "../open/start-machine.js";

/** The two sandboxes of a canary: what works in the open one, and must fail in the limited one. */
export interface CanaryBench {
  readonly account: Account;
  readonly open: StartedMachine;
  /** What the open sandbox can reach. */
  readonly control: Reached;
  readonly limited: StartedMachine;
  readonly sandbox: RemoteSandbox;
  /** Names the ports inside it that the runner may connect to. */
  letIn(ports: readonly number[]): void;
  /** Opens one more with these ports, which is closed with the others. */
  openAnother(ports: readonly number[]): Promise<RemoteSandbox>;
  /** Why the network of the limited sandbox couldn't be limited; undefined if it is. */
  readonly unrestricted: unknown;
  /** Why no secret could be stored for it; undefined if one was stored. */
  readonly withoutSecret: unknown;
  readonly decoys: CanaryDecoys;
  readonly signal: AbortSignal;
}

/** Random texts that are searched for, each stored in one place. */
export interface CanaryDecoys {
  /** In the environment of processes that the platform starts itself. */
  readonly variable: string;
  /** The value of a secret of the organisation. */
  readonly secret: string;
  /** On the command line of a process in the open sandbox. */
  readonly process: string;
}

export type CanaryTrial = kit.Trial<CanaryBench, Claim>;
