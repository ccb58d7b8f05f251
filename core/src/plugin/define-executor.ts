import { domains } from "../contract/index.js";
import type { ToolExecutor } from "./kinds/executor.js";

type Required = "kind" | "site" | "execute";

/** What an author writes of an executor. `name` defaults to the kind; the rest to what `defineExecutor` says. */
export type ExecutorDefinition = Pick<ToolExecutor, Required> & Partial<Omit<ToolExecutor, Required>>;

/**
 * Makes a `ToolExecutor` that is refused wherever its author hasn't said otherwise: it touches every domain and claims
 * nothing, so under any boundary it is a gap, unless its site is `caller` or `sandbox`. An executor that acts in fewer
 * domains says so in `touches`; one that enforces something lists it in `claims` and shows it in `probe`. It has no
 * gaps or issues of its own.
 */
export function defineExecutor(definition: ExecutorDefinition): ToolExecutor {
  return Object.freeze({
    name: definition.kind,
    claims: [],
    touches: () => domains,
    gaps: () => [],
    issues: () => [],
    probe: async () => [],
    ...definition,
  });
}
