import type { Capability, Sandbox, SandboxSpec } from "@ambit/core/plugin";
import type { DecoyProcess } from "../decoys/decoy-process.js";
import type { Decoys } from "../decoys/decoys.js";
import type { BoundaryOverrides } from "../stage/boundaries.js";
import type { RunnerProcess } from "../stage/runner-process.js";

/** What became of one attempt. */
export interface Outcome {
  /**
   * `reached`: it got what it was after · `blocked`: it ran and got nothing · `not-run`: it didn't get as far as
   * trying, which proves nothing · `impossible`: this host has nothing of the kind to reach · `refused`: the backend
   * states the boundary that it is made within as a gap, and opens nothing.
   */
  readonly result: "reached" | "blocked" | "not-run" | "impossible" | "refused";
  /** What was reached or what stood in the way, in the host's own words. */
  readonly detail: string;
}

/** Where an attempt is made: a sandbox, guarded or not, and decoys on this machine to reach from it. */
export interface Stage {
  readonly spec: SandboxSpec;
  readonly sandbox: Sandbox;
  readonly decoys: Decoys;
  /** A process of the same host user as the sandbox's, which holds the decoys' secret. Started at first call. */
  decoyProcess(): Promise<DecoyProcess>;
  /** All that the backend logged and decided of the stage's sandboxes so far. */
  told(): string;
  /** Another session beside this one, closed with the stage. */
  openBeside(overrides?: BoundaryOverrides): Promise<Sandbox>;
  /** A runner in a process of its own, where one can be had. */
  startRunner?(options: RunnerOptions): Promise<RunnerProcess>;
}

export interface RunnerOptions {
  /** A program for a sandbox of that runner. */
  readonly argv: readonly [string, ...string[]];
  /** A file that the runner holds open, and would pass on to whatever it starts. */
  readonly inheritedFile?: string;
}

interface Trial {
  /** Unique, and stable: `network.deny/tcp`. */
  readonly id: `${Capability}/${string}`;
  readonly capability: Capability;
  /** What is tried, as a phrase: "connect to a TCP server on the host's loopback". */
  readonly title: string;
  /** Leaves its sandbox unusable for others, or closes it. Default: it is shared with the capability's other trials. */
  readonly alone?: boolean;
  /** Only where the backend trusts the kit's `CredentialHost`, and resolves its names. */
  readonly needsCredentials?: boolean;
  /** Must settle by itself; what it starts ends with the stage. */
  perform(stage: Stage): Promise<Outcome>;
}

/** Something that must not be reached from inside, and is reached without the guard. */
export interface Attack extends Trial {
  /** What not every host gives an unguarded process: "CAP_NET_RAW". Without it, the attack is said to prove nothing. */
  readonly needs?: string;
  /** A bare control runs as the kit's own user, root in CI. Never for what changes anything on the host. */
  readonly asRoot?: boolean;
  /** Only where the backend resolves names by the kit's `ChangingNames`. */
  readonly needsNames?: boolean;
  /** Only where the kit can start a runner of its own. */
  readonly needsRunner?: boolean;
}

/** Something that must still be reached from inside: a sandbox that allows nothing at all keeps no promise either. */
export interface Allowance extends Trial {}

export type NonEmptyArray<T> = readonly [T, ...T[]];

export const reached = (detail: string): Outcome => ({ result: "reached", detail });
export const blocked = (detail: string): Outcome => ({ result: "blocked", detail });
export const notRun = (detail: string): Outcome => ({ result: "not-run", detail });
export const refused = (detail: string): Outcome => ({ result: "refused", detail });
export const impossible = (detail: string): Outcome => ({ result: "impossible", detail });
