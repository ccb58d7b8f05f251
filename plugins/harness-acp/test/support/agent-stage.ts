import { join } from "node:path";
import type { Agent } from "@ambit/core/plugin";
import { type ModelServer, startModelServer } from "@ambit/model-server";
import { modelAccess } from "../../src/harness/model.js";
import { AcpHarness } from "../../src/index.js";
import { locateProgram } from "../../src/installation/locate-program.js";
import type { Profile } from "../../src/profiles/profile.js";
import { ProcessSandbox } from "./process-sandbox.js";
import { requestOf, TestScope } from "./runs.js";

/** Where agents are looked for first: the repository's root, where npm puts those of every test run, or `AMBIT_AGENTS_FOLDER`. */
export const folder = process.env.AMBIT_AGENTS_FOLDER ?? join(import.meta.dirname, "../../../..");
export const limits = {
  cancelMs: 10_000,
  closeMs: 2_000,
  messageCharacters: 4_000_000,
  bufferedCharacters: 262_144,
};
const key = "key-for-the-scripted-model";

/** What `AMBIT_TEST_AGENTS` says: the ids of agents, separated by commas, or `all`. Those are tested whole. */
const chosen = process.env.AMBIT_TEST_AGENTS?.split(",");
export const testsWhole = chosen !== undefined;

/** Whether this agent is tested: one of `AMBIT_TEST_AGENTS`, by default of these. `ambit agents install` brings the others. */
export function isTested(id: string, ...always: readonly string[]): boolean {
  return (chosen ?? always).includes(id) || chosen?.includes("all") === true;
}

export function isInstalled(profile: Profile): boolean {
  return locateProgram(profile, { command: undefined, folder }) !== undefined;
}

/** A real agent in an unconfined sandbox, with a scripted model. */
export class AgentStage {
  readonly key = key;

  private constructor(
    readonly profile: Profile,
    readonly sandbox: ProcessSandbox,
    readonly model: ModelServer,
  ) {}

  static async open(profile: Profile): Promise<AgentStage> {
    const [sandbox, model] = await Promise.all([
      ProcessSandbox.open(),
      startModelServer({ expectedKey: key }),
    ]);
    return new AgentStage(profile, sandbox, model);
  }

  requestWith({
    modelConnection = {},
    ...changes
  }: {
    readonly modelConnection?: object;
    readonly [field: string]: unknown;
  } = {}): object {
    const access = modelAccess(this.profile, requestOf({ modelConnection }));
    const basePath = access?.route?.protocol === "openai" ? "/v1" : "";
    return {
      modelConnection: {
        endpoint: { baseUrl: `${this.model.url}${basePath}` },
        credentials: [
          { binding: { kind: "environment", name: access?.credentials[0] ?? "NONE" }, value: key },
        ],
        ...modelConnection,
      },
      ...changes,
    };
  }

  async start(
    options: ConstructorParameters<typeof TestScope>[1] = {},
    profile: Profile = this.profile,
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
