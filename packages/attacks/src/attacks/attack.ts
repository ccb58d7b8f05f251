import type { Capability, Sandbox, SandboxSpec } from "@ambit/core/plugin";
import type { DecoyProcess } from "../decoys/decoy-process.js";
import type { Decoys } from "../decoys/decoys.js";
import type { NearTarget } from "../decoys/place.js";
import type { Mechanism } from "../mechanisms.js";
import type { Finished } from "../programs/run-program.js";
import type { BoundaryOverrides } from "../stage/boundaries.js";

/** The outcome of one attempt. */
export interface AttackOutcome {
  /**
   * `reached`: it got what it was after · `blocked`: it ran and got nothing · `not-run`: it failed before it could try,
   * which proves nothing · `impossible`: this host has no such target · `refused`: the backend reports the boundary for
   * the attack as a gap, and opens nothing.
   */
  readonly result: "reached" | "blocked" | "not-run" | "impossible" | "refused";
  /** What was reached, or what prevented it, in the host's own words. */
  readonly detail: string;
}

/** Where an attempt is made: a sandbox, guarded or not, and decoys on this machine to reach from it. */
export interface Stage {
  readonly spec: SandboxSpec;
  readonly sandbox: Sandbox;
  readonly decoys: Decoys;
  /** A process of the same host user as the sandbox's, which holds the decoys' secret. Started at the first call. */
  decoyProcess(): Promise<DecoyProcess>;
  /** Decoys that a sandbox of the backend reaches without limits, or why there are none. */
  near?(): Promise<readonly NearTarget[] | string>;
  /** Everything that the backend has logged and decided for the stage's sandboxes. */
  recordedText(): string;
  /** Another session, closed with the stage. */
  openAnother(overrides?: BoundaryOverrides): Promise<Sandbox>;
  /** A runner in a separate process, if one can be started. */
  startRunner?(options: RunnerProcessOptions): Promise<RunnerProcess>;
}

/** A runner in a separate process, with one sandbox in which one program runs. */
export interface RunnerProcess {
  readonly pid: number;
  /** The program's output, when the runner has ended. */
  readonly finished: Promise<Finished>;
  /** @throws when the runner ends before its program has printed the text. */
  says(text: string): Promise<void>;
  /** Sends SIGKILL and waits for its end. Safe to call twice. */
  kill(): Promise<void>;
}

export interface RunnerProcessOptions {
  /** A program for a sandbox of that runner. */
  readonly argv: readonly [string, ...string[]];
  /** A file that the runner has open, and that its child processes would inherit. */
  readonly inheritedFile?: string;
}

interface AttackSubject {
  /** Unique, and stable: `network.deny/tcp`. */
  readonly id: `${Capability}/${string}`;
  readonly capability: Capability;
  /** What is tried, as a phrase: "connect to a TCP server of the host". */
  readonly title: string;
  /** Makes its sandbox unusable for others, or closes it. Default: shared with the capability's other trials. */
  readonly alone?: boolean;
  /** Only if the backend trusts the kit's `CredentialHost`, and resolves its names. */
  readonly needsCredentials?: boolean;
  /** Must settle by itself; processes that it starts end with the stage. */
  perform(stage: Stage): Promise<AttackOutcome>;
}

/** Something that must not be reached from inside, and is reached without the guard. */
export interface Attack extends AttackSubject {
  /** The mechanisms without all of which it works. Default: those of its capability. */
  readonly stoppedBy?: readonly [Mechanism, ...Mechanism[]];
  /**
   * A privilege that not every host gives an unguarded process: "CAP_NET_RAW". Without it, the attack counts as proving
   * nothing.
   */
  readonly needs?: string;
  /**
   * A bare control runs as the kit's own user, which is root in CI. Never for attacks that change anything on the host.
   */
  readonly asRoot?: boolean;
  /** How often its control is tried until it works, where that takes luck. Default: once; `resources.*`: four times. */
  readonly controlTries?: number;
  /** Its control is a sandbox of the same backend, without limits. */
  readonly inOpenSandbox?: boolean;
  /** Only if the backend resolves names through the kit's `ChangingNames`. */
  readonly needsNames?: boolean;
  /** Only if the kit can start a separate runner. */
  readonly needsRunner?: boolean;
}

/** Something that must still be reached from inside: a sandbox that allows nothing fulfils no promise either. */
export interface Allowance extends AttackSubject {}

export type NonEmptyArray<T> = readonly [T, ...T[]];

export const reached = (detail: string): AttackOutcome => ({ result: "reached", detail });
export const blocked = (detail: string): AttackOutcome => ({ result: "blocked", detail });
export const notRun = (detail: string): AttackOutcome => ({ result: "not-run", detail });
export const refused = (detail: string): AttackOutcome => ({ result: "refused", detail });
export const impossible = (detail: string): AttackOutcome => ({ result: "impossible", detail });
