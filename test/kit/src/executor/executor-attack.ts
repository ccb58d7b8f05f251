import type { sandboxPermissionSchema } from "@ambit/core";
import { type Capability, domainOf, type ToolExecutor, type ToolOutcome } from "@ambit/core/plugin";
import type { z } from "zod";
import { boundaryOf, executeCase } from "./execute.js";
import type { ExecutorCase, ExecutorWorld } from "./executor-case.js";
import type { OpenWorld } from "./world.js";

/** An author's own attack on a claim of an executor: a call that breaks the promise where nothing enforces it. */
export interface ExecutorAttack extends Omit<ExecutorCase, "status" | "output"> {
  /** The claim that it would break. */
  readonly capability: Capability;
  /** The boundary that requires the claim. Without any boundary, the attack must work: that is its control. */
  readonly permission: z.input<typeof sandboxPermissionSchema>;
  /** Whether the call did what it must not do. */
  reached(outcome: ToolOutcome, world: ExecutorWorld): boolean;
}

/**
 * Claims that nothing attacks. The suite itself tries whether an executor's requests stay within a network boundary; what else
 * one on the runner claims would only be its author's word.
 */
export function claimsWithoutAttack(
  { site, claims }: Pick<ToolExecutor, "site" | "claims">,
  attacks: readonly Pick<ExecutorAttack, "capability">[],
): readonly Capability[] {
  if (site !== "runner") return [];
  return claims
    .filter((claim) => domainOf(claim) !== "network")
    .filter((claim) => !attacks.some(({ capability }) => capability === claim));
}

/**
 * Whether the attack works without a boundary, and within the one that requires the claim.
 *
 * @param unguarded an executor without what enforces the claim. Default: the executor itself
 */
export async function tryExecutorAttack(
  executor: ToolExecutor,
  attack: ExecutorAttack,
  world: OpenWorld,
  unguarded: ToolExecutor = executor,
): Promise<{ readonly control: boolean; readonly guarded: boolean }> {
  const { outcome } = await executeCase(unguarded, { ...attack, status: "completed" }, world);
  const control = attack.reached(outcome, world);
  const boundary = boundaryOf(attack.permission);
  // A refusal is as good as a failure.
  const within = await executeCase(executor, { ...attack, status: "completed" }, world, { boundary }).catch(
    () => undefined,
  );
  return { control, guarded: within !== undefined && attack.reached(within.outcome, world) };
}
