import { HarnessFailed, SandboxFailed } from "@ambit/core";
import { expect, test } from "vitest";
import { namingLimits } from "../src/session/agent/start-agent.js";

test("an agent that doesn't start names the limits that the request set", () => {
  const failure = new HarnessFailed("the demo agent ended with exit code 137 during initialize.");
  expect(namingLimits(failure, { memoryMb: 8, processes: 4 })).toMatchObject({
    code: "harness_failed",
    message:
      "the demo agent ended with exit code 137 during initialize. The request allows it 8 MiB of memory (resources.memoryMb), 4 processes and threads (resources.processes): if the agent needs more, raise that.",
    cause: failure,
  });
  expect(namingLimits(failure, {})).toBe(failure);
  const other = new SandboxFailed("no room");
  expect(namingLimits(other, { memoryMb: 8 })).toBe(other);
});
