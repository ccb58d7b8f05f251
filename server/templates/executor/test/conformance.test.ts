import { describeToolExecutor } from "@ambit/testkit/vitest";
import { makeExecutor } from "../src/index.js";

const tool = { name: "now", kind: "sample" };

// The kit watches what the executor touches, and fails if that is more than it says.
describeToolExecutor(
  () => makeExecutor({ timeZone: "UTC" }),
  () => [
    { name: "a time", tool, arguments: {}, status: "completed", output: /\d\d:\d\d:\d\d/ },
    {
      name: "an unknown time zone",
      tool,
      arguments: { timeZone: "Nowhere" },
      status: "failed",
      output: "There is no such time zone.",
    },
  ],
);
