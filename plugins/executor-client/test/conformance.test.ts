import { describeToolExecutor } from "@ambit/testkit/vitest";
import { clientExecutor } from "../src/index.js";

describeToolExecutor(
  () => clientExecutor,
  () => [{ name: "any", tool: { name: "pick", kind: "client" }, status: "parked" }],
);
