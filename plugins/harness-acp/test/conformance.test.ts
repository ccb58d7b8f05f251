// needs: init
import { describeHarness } from "@ambit/testkit/vitest";
import { AcpHarness } from "../src/index.js";
import { demo } from "../src/profiles/demo.js";

const limits = { cancelMs: 1_000, closeMs: 500 };

describeHarness((command) => new AcpHarness(demo, { limits, folder: import.meta.dirname, env: {}, command }));
