import {
  type Mechanism as AnyMechanism,
  type Attack,
  mechanismNames,
  mechanismsAgainst,
} from "@ambit/attacks";

/** bubblewrap always applies the first, and the second isn't a jail's. */
const kept = ["no new privileges", "credential broker"] as const;

/** What can be removed from a jail, alone or with others; all others stay unchanged. */
export type RemovableMechanism = Exclude<AnyMechanism, (typeof kept)[number]>;

const isRemovable = (name: AnyMechanism): name is RemovableMechanism => !kept.some((one) => one === name);

export const removableMechanisms: readonly RemovableMechanism[] = mechanismNames.filter(isRemovable);

/** The mechanisms to remove for an attack to work; `bare` if none can be removed alone. */
export function withoutFor(
  attack: Pick<Attack, "capability" | "stoppedBy">,
): readonly RemovableMechanism[] | "bare" {
  const against = mechanismsAgainst(attack);
  const removable = against.filter(isRemovable);
  return removable.length === against.length ? removable : "bare";
}

/** What removed mechanisms are replaced with: only decoys. */
export interface JailDecoys {
  /** Folders of the host that a jail shows if the host isn't hidden. */
  readonly folders: readonly string[];
  /** Variables that a jail has if its environment isn't cleared. */
  readonly environment: Readonly<Record<string, string>>;
}
