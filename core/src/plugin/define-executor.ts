import { domains } from "../contract/index.js";
import type { ToolExecutor } from "./kinds/executor.js";

type Required = "kind" | "site" | "execute";

/** An executor as its author writes it. `name` defaults to the kind, the rest as `defineExecutor` says. */
export type ExecutorDefinition = Pick<ToolExecutor, Required> & Partial<Omit<ToolExecutor, Required>>;

/**
 * Makes a `ToolExecutor` with conservative defaults: it touches every domain and claims nothing, so any boundary refuses
 * it, unless its site is `caller` or `sandbox`. Set `touches` for an executor that acts in fewer domains, and `claims` and
 * `probe` for what it enforces. By default it states no gaps and no issues.
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
