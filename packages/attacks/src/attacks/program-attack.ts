import { type Capability, isCapability } from "@ambit/core/plugin";
import { freshNonce } from "../decoys/nonce.js";
import { type Finished, type ProgramOptions, runProgram } from "../programs/run-program.js";
import type { BoundaryOverrides } from "../stage/boundaries.js";
import {
  type Attack,
  type AttackOutcome,
  blocked,
  impossible,
  notRun,
  reached,
  type Stage,
} from "./attack.js";

export interface ProgramAttack
  extends Pick<
    Attack,
    "title" | "stoppedBy" | "needs" | "needsNames" | "needsCredentials" | "asRoot" | "alone"
  > {
  readonly id: `${Capability}/${string}`;
  /** Python, run inside after the preamble: it reads `P`, and reports with `attempt`. */
  readonly program: string;
  /** The program's parameters besides `nonce`. A string names what this host lacks: the attack is impossible then. */
  readonly parameters?: (stage: Stage) => object | string | Promise<object | string>;
  readonly options?: ProgramOptions;
  /** Runs in an additional sandbox, with this in its boundary. */
  readonly inAnother?: (stage: Stage) => BoundaryOverrides;
  /** Preparation on the runner's side. */
  readonly prepare?: (stage: Stage) => Promise<void>;
  /** The effect on the host, whatever the program itself reports. Undefined: none. */
  readonly aftermath?: (stage: Stage, nonce: string) => Promise<string | undefined>;
  /** Whether this attack may be stopped by killing it. Default: that proves nothing. */
  readonly killedIsBlocked?: boolean;
}

/** An attack that runs a program inside, judged by its output and by what the decoys saw. */
export function programAttack(attack: ProgramAttack): Attack {
  const {
    program,
    parameters: parametersFor,
    options,
    inAnother,
    prepare,
    aftermath,
    killedIsBlocked,
    ...told
  } = attack;
  return {
    ...told,
    capability: capabilityOf(told.id),
    perform: async (stage) => {
      const parameters = (await parametersFor?.(stage)) ?? {};
      if (typeof parameters === "string") return impossible(parameters);
      await prepare?.(stage);
      const nonce = freshNonce();
      const sandbox = inAnother === undefined ? stage.sandbox : await stage.openAnother(inAnother(stage));
      const finished = await runProgram(sandbox, program, { ...parameters, nonce }, options);
      if (stage.decoys.saw(nonce)) return reached("a decoy on the host saw it");
      const happened = await aftermath?.(stage, nonce);
      if (happened !== undefined) return reached(happened);
      return outcomeOf(finished, killedIsBlocked);
    },
  };
}

/** An attack's name begins with the capability that it tests. */
export function capabilityOf(id: `${Capability}/${string}`): Capability {
  const name = id.slice(0, id.indexOf("/"));
  if (!isCapability(name)) throw new Error(`${id} doesn't begin with a capability`);
  return name;
}

/**
 * The outcome in a program's output: any attempt that reached its target counts; no attempt at all means that it didn't
 * try.
 */
export function outcomeOf(finished: Finished, killedIsBlocked = false): AttackOutcome {
  const lines = finished.stdout.split("\n");
  const said = (word: string) =>
    lines.filter((line) => line.startsWith(`${word} `)).map((line) => line.slice(word.length + 1).trim());
  const ending = `exit ${finished.code ?? finished.signal}`;
  if (!lines.some((line) => line.trim() === "RAN")) {
    return notRun(`it never ran (${ending}): ${finished.stderr.trim().slice(-300)}`);
  }
  const successes = said("REACHED");
  if (successes.length > 0) return reached(successes.join("; "));
  // In the program itself or in a process that it started.
  const broken = said("BROKEN");
  if (broken.length > 0) return notRun(`it couldn't load what it needs: ${broken.join("; ")}`);
  const skipped = said("IMPOSSIBLE");
  const failures = said("BLOCKED");
  if (failures.length > 0 && finished.code === 0) return blocked(failures.join("; "));
  if (killedIsBlocked && wasKilled(finished)) return blocked(`killed (${ending})`);
  if (failures.length === 0 && skipped.length > 0) return impossible(skipped.join("; "));
  return notRun(`it ended before it had tried everything (${ending}): ${finished.stderr.trim().slice(-300)}`);
}

/** Killed by a signal, reported as such or in the shell's form. */
export function wasKilled({ code, signal }: Pick<Finished, "code" | "signal">): boolean {
  return signal !== null || (code !== null && code > 128);
}
