import type { ContractCheck } from "./contract.js";
import { exposureChecks } from "./exposure-checks.js";
import { fileChecks } from "./file-checks.js";
import { processChecks } from "./process-checks.js";
import { sessionChecks } from "./session-checks.js";
import { workspaceChecks } from "./workspace-checks.js";

/** What `SandboxBackend` and `Sandbox` guarantee in every sandbox, guarded or not. */
export const contractChecks: readonly ContractCheck[] = [
  ...sessionChecks,
  ...processChecks,
  ...fileChecks,
  ...exposureChecks,
  ...workspaceChecks,
];
