import { describeHarness } from "@ambit/testkit/vitest";
import { makeHarness } from "../src/index.js";

// The kit replaces the agent by scripted ones, good and bad.
describeHarness((command) => makeHarness(command));
