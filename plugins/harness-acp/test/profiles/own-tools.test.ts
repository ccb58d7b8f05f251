import { describeHarnessPermissions } from "@ambit/testkit/vitest";
import { testsAll } from "../support/agent-stage.js";
import { ownToolsCase, ownToolsCases } from "../support/own-tools-cases.js";

const always = ["codex", "gemini", "pi"];

for (const { profile, tried } of ownToolsCases) {
  if (testsAll || always.includes(profile.id)) describeHarnessPermissions(ownToolsCase(profile, tried));
}
