import {
  type Allowance,
  type Attack,
  type AttackOutcome,
  type Decoys,
  notRun,
  refused,
  type Stage,
} from "@ambit/attacks";
import type { ActorGap, Boundary, Capability, Sandbox, SandboxSpec, Scope } from "@ambit/core/plugin";
import { messageOf } from "@ambit/core/plugin";
import type { Control } from "../control/control.js";
import { openBoundary } from "../stage/near-decoys.js";
import { type OpenStage, openStage, StageRefused } from "../stage/stage.js";

export interface TrialPlace {
  readonly capability: Capability;
  readonly claims: readonly Capability[];
  readonly decoys: Decoys;
  readonly runnerModule?: URL | undefined;
  readonly near?: Stage["near"] | undefined;
  open(spec: SandboxSpec, scope: Scope): Promise<Sandbox>;
  /** In the form that the backend reports it to the planner. */
  readonly gaps?: ((boundary: Boundary) => readonly ActorGap[]) | undefined;
}

/** Tries one after the other in one sandbox, unless a trial needs a separate one. */
export class Trials {
  readonly #place: TrialPlace;
  #shared: OpenStage | undefined;

  constructor(place: TrialPlace) {
    this.#place = place;
  }

  async try(trial: Attack | Allowance): Promise<AttackOutcome> {
    if (trial.alone === true) return tryAlone(trial, this.#place);
    const first = await this.#try(trial);
    if (!isInLostSandbox(first, this.#shared)) return first;
    try {
      await this.close();
    } catch (error) {
      return notRun(`the sandbox didn't close: ${allMessagesOf(error)}`);
    }
    return this.#try(trial);
  }

  async #try(trial: Attack | Allowance): Promise<AttackOutcome> {
    try {
      this.#shared ??= await openStage(this.#place);
    } catch (error) {
      return notRun(`the sandbox didn't open: ${allMessagesOf(error)}`);
    }
    return performed(trial, this.#shared);
  }

  async close(): Promise<void> {
    await this.#shared?.close();
    this.#shared = undefined;
  }
}

/** Tries of a control that competes for the machine's processors and memory with everything else. */
const triesForResources = 4;

/** The same attacks without a guard: in one sandbox for those of which the control says so, else each in a separate one. */
export class UnguardedTrials {
  readonly #control: Control;
  readonly #place: TrialPlace;
  readonly #shared = new Map<string, Trials>();

  constructor(control: Control, place: TrialPlace) {
    this.#control = control;
    this.#place = place;
  }

  try(attack: Attack): Promise<AttackOutcome> {
    const group = attack.inOpenSandbox === true ? undefined : this.#control.sharedBy?.(attack);
    if (group === undefined) return tryUnguarded(attack, this.#control, this.#place);
    const trials = this.#shared.get(group) ?? new Trials(unguardedPlace(attack, this.#control, this.#place));
    this.#shared.set(group, trials);
    return trials.try(attack);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#shared.values()].map((trials) => trials.close()));
  }
}

function unguardedPlace(attack: Attack, control: Control, place: TrialPlace): TrialPlace {
  const { runnerModule } = control;
  return {
    ...place,
    gaps: undefined,
    runnerModule: typeof runnerModule === "function" ? runnerModule(attack) : runnerModule,
    open: (spec: SandboxSpec, scope: Scope) =>
      attack.inOpenSandbox === true
        ? place.open({ ...spec, boundary: openBoundary, required: [] }, scope)
        : control.open(attack, spec, scope, place.decoys),
  };
}

/** The same attack without a guard, in a separate sandbox. */
export async function tryUnguarded(
  attack: Attack,
  control: Control,
  place: TrialPlace,
): Promise<AttackOutcome> {
  const unguarded = unguardedPlace(attack, control, place);
  let outcome = await tryAlone(attack, unguarded);
  const { controlTries = attack.capability.startsWith("resources.") ? triesForResources : 1 } = attack;
  for (let tried = 1; tried < controlTries && outcome.result !== "reached"; tried += 1)
    outcome = await tryAlone(attack, unguarded);
  return outcome;
}

/** Such an attempt says nothing about the guard, so it is made a second time. */
function isInLostSandbox({ result }: AttackOutcome, stage: OpenStage | undefined): boolean {
  return result === "not-run" && stage?.whyLost() !== undefined;
}

async function tryAlone(
  trial: Attack | Allowance,
  place: TrialPlace,
  isFirst = true,
): Promise<AttackOutcome> {
  let stage: OpenStage;
  try {
    stage = await openStage(place);
  } catch (error) {
    return notRun(`the sandbox didn't open: ${allMessagesOf(error)}`);
  }
  const outcome = await performed(trial, stage);
  try {
    await stage.close();
  } catch (error) {
    return notRun(`the sandbox didn't close: ${allMessagesOf(error)}`);
  }
  return isFirst && isInLostSandbox(outcome, stage) ? tryAlone(trial, place, false) : outcome;
}

async function performed(trial: Attack | Allowance, stage: OpenStage): Promise<AttackOutcome> {
  const outcome = await trial
    .perform(stage)
    .catch((error: unknown) =>
      error instanceof StageRefused ? refused(error.message) : notRun(allMessagesOf(error)),
    );
  const lost = stage.whyLost();
  if (outcome.result !== "not-run" || lost === undefined) return outcome;
  return notRun(`${outcome.detail}; a sandbox was lost: ${lost}`);
}

export function allMessagesOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(allMessagesOf).join("; ");
  return messageOf(error);
}
