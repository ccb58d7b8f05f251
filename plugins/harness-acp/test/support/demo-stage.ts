import type { Agent } from "@ambit/core/plugin";
import { afterEach, beforeEach } from "vitest";
import { AcpHarness } from "../../src/index.js";
import { demo } from "../../src/profiles/demo.js";
import type { Profile } from "../../src/profiles/profile.js";
import { ProcessSandbox } from "./process-sandbox.js";
import { TestScope } from "./runs.js";

const limits = { cancelMs: 500, closeMs: 2_000, messageCharacters: 1_000_000, bufferedCharacters: 8_192 };

export function demoHarness(profile: Profile = demo): AcpHarness {
  return new AcpHarness(profile, { limits, folder: import.meta.dirname, env: { FROM_DEPLOYER: "yes" } });
}

/** The demo agent, in an unconfined sandbox of each test. */
export class DemoStage {
  sandbox!: ProcessSandbox;

  constructor() {
    beforeEach(async () => {
      this.sandbox = await ProcessSandbox.open();
    });
    afterEach(() => this.sandbox.close());
  }

  async start(
    options: ConstructorParameters<typeof TestScope>[1] = {},
  ): Promise<{ scope: TestScope; agent: Agent }> {
    const scope = new TestScope(this.sandbox, options);
    return { scope, agent: await demoHarness().start(scope) };
  }
}
