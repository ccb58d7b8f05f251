import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Test files that take over 15 s, which would leave the other workers idle if they started last. */
const slow = [
  "plugins/sandbox-docker/test/",
  "plugins/sandbox-local/test/conformance/",
  "test/e2e/boundary/one-word",
  "test/e2e/docs/write-a-backend",
  "plugins/sandbox-daytona/test/conformance",
  "test/tools/test/permissions/own-tools",
  "plugins/sandbox-daytona/test/mutation/",
  "plugins/sandbox-daytona/test/canary",
  "plugins/sandbox-daytona/test/open",
  "bench/test/soak",
  "test/kit/test/liar",
  "plugins/sandbox-local/test/reaper/killed",
  "test/tools/test/mcp/npx-servers",
  "test/tools/test/permissions/parked-sessions",
  "plugins/sandbox-local/test/programs",
  "plugins/harness-acp/test/profiles/codex",
  "test/e2e/",
];

function rank({ moduleId }: TestSpecification): number {
  const found = slow.findIndex((part) => moduleId.includes(part));
  return found === -1 ? slow.length : found;
}

/** On a fresh clone vitest knows no durations, and would start with the largest files. */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => rank(one) - rank(other));
  }
}
