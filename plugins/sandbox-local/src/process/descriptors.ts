import { readdirSync } from "node:fs";
import { readBeginning } from "./read-beginning.js";

const closeOnExec = 0o2000000;

/**
 * Descriptors of this process that a child would inherit: neither Node nor bubblewrap closes those that the runner's
 * parent left open. Read again for each spawn.
 */
export function inheritableDescriptors(): readonly number[] {
  if (process.platform !== "linux") return [];
  const descriptors = readdirSync("/proc/self/fdinfo").map(Number);
  return descriptors.filter((descriptor) => descriptor > 2 && isInheritable(descriptor));
}

function isInheritable(descriptor: number): boolean {
  try {
    const flags = /^flags:\s+([0-7]+)/m.exec(readBeginning(`/proc/self/fdinfo/${descriptor}`))?.[1];
    return flags !== undefined && (Number.parseInt(flags, 8) & closeOnExec) === 0;
  } catch (error) {
    // The listing's own descriptor is closed by now; so may be any other.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
    throw error;
  }
}

/**
 * What a child gets at each number: the planned descriptor, `/dev/null` over every other one that it would inherit (where
 * `ignore` is planned, too), and nothing at the rest.
 */
export function descriptorTable<Planned>(
  planned: readonly Planned[],
  inheritable: readonly number[],
  devNull: number,
): readonly (Planned | number | "ignore")[] {
  const table: (Planned | number | "ignore")[] = [...planned];
  for (const descriptor of inheritable) {
    if (descriptor < planned.length && planned[descriptor] !== "ignore") continue;
    while (table.length < descriptor) table.push("ignore");
    table[descriptor] = devNull;
  }
  return table;
}
