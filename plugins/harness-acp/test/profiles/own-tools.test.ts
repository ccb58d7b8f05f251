import { describeHarnessPermissions } from "@ambit/testkit/vitest";
import { isTested } from "../support/agent-stage.js";
import { ownToolsCase, ownToolsCases } from "../support/own-tools-cases.js";

for (const { profile, tried } of ownToolsCases) {
  if (isTested(profile.id, "codex", "gemini", "pi")) describeHarnessPermissions(ownToolsCase(profile, tried));
}
