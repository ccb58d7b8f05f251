import { ceilingCases } from "./ceiling.js";
import { ladderCases } from "./ladder.js";
import type { PermissionCase } from "./permission-case.js";
import { ruleCases } from "./rules.js";

export type { PermissionCase } from "./permission-case.js";

/** The tool is called `Bash` in all of them. */
export const permissionCases: readonly PermissionCase[] = [...ladderCases, ...ruleCases, ...ceilingCases];
