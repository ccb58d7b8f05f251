import { describeSandboxBackend } from "@ambit/testkit/vitest";
import { Backend, configSchema } from "../src/index.js";

// Every attack on what is claimed must fail, and what isn't claimed must be refused.
describeSandboxBackend(() => new Backend(configSchema.parse({})), {
  withoutProgram: () => new Backend({ bubblewrap: "ambit-no-such-program" }),
});
