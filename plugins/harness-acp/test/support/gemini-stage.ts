import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Agent } from "@ambit/core/plugin";
import { type ModelServer, startModelServer } from "@ambit/model-server";
import { AcpHarness } from "../../src/index.js";
import { gemini } from "../../src/profiles/gemini.js";
import type { Profile } from "../../src/profiles/profile.js";
import { ProcessSandbox } from "./process-sandbox.js";
import { TestScope } from "./runs.js";

/** Where npm installed the CLI, which this package has for its tests. */
const folder = dirname(fileURLToPath(import.meta.resolve("@google/gemini-cli/package.json")));
const limits = {
  cancelMs: 10_000,
  closeMs: 5_000,
  messageCharacters: 1_000_000,
  bufferedCharacters: 262_144,
};
const key = "key-for-the-scripted-model";

/** The real Gemini CLI in an unconfined sandbox, with a scripted model. */
export class GeminiStage {
  readonly installation = folder;

  private constructor(
    readonly sandbox: ProcessSandbox,
    readonly model: ModelServer,
  ) {}

  static async open(): Promise<GeminiStage> {
    const [sandbox, model] = await Promise.all([
      ProcessSandbox.open(),
      startModelServer({ expectedKey: key }),
    ]);
    return new GeminiStage(sandbox, model);
  }

  requestWith(changes: object = {}, credential = key): object {
    return {
      modelConnection: {
        provider: "google",
        endpoint: { baseUrl: this.model.url },
        credentials: [{ binding: { kind: "environment", name: "GEMINI_API_KEY" }, value: credential }],
      },
      ...changes,
    };
  }

  async start(
    options: ConstructorParameters<typeof TestScope>[1] = {},
    profile: Profile = gemini,
  ): Promise<{ scope: TestScope; agent: Agent }> {
    const harness = new AcpHarness(profile, { limits, folder, env: {} });
    const scope = new TestScope(this.sandbox, { request: this.requestWith(), ...options });
    return { scope, agent: await harness.start(scope) };
  }

  async close(): Promise<void> {
    await this.sandbox.close();
    await this.model.close();
  }
}
