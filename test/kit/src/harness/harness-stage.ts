import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Agent, type Harness, runRequestSchema } from "@ambit/core/plugin";
import { z } from "zod";
import { BareSandbox } from "../control/bare-sandbox.js";
import { KitScope, silentLog } from "../stage/kit-scope.js";
import { type AgentScript, agentProgram } from "./agent-program.js";
import { runTurn, type TurnOptions, type TurnResult } from "./turn.js";

/** Makes the harness under test with the program at this path instead of its agent. */
export type MakeHarness = (program: string) => Harness;

const processesSchema = z.array(z.int());

/** One scripted agent, the harness that drives it, and an unconfined sandbox to run it in. */
export class HarnessStage {
  readonly scope = new KitScope();

  private constructor(
    readonly harness: Harness,
    readonly sandbox: BareSandbox,
    readonly folder: string,
  ) {}

  static async open(makeHarness: MakeHarness, script: AgentScript): Promise<HarnessStage> {
    const folder = await mkdtemp(join(tmpdir(), "ambit-kit-agent-"));
    const program = join(folder, "agent.mjs");
    await writeFile(program, agentProgram(script));
    await chmod(program, 0o755);
    const sandbox = await BareSandbox.open({ user: undefined, confinement: "unconfined", env: {} });
    return new HarnessStage(makeHarness(program), sandbox, folder);
  }

  start(): Promise<Agent> {
    const { scope, sandbox } = this;
    return this.harness.start({
      sandbox,
      servers: [],
      request: runRequestSchema.parse({}),
      log: silentLog,
      signal: scope.signal,
      defer: (close) => scope.defer(close),
    });
  }

  turn(agent: Agent, text: string, options?: TurnOptions): Promise<TurnResult> {
    return runTurn(agent, text, options);
  }

  /** Process numbers of the agent and of its children. Empty if it never ran. */
  async processes(): Promise<readonly number[]> {
    const text = await readFile(join(this.sandbox.workspace, "processes.json"), "utf8").catch(() => "[]");
    return processesSchema.parse(JSON.parse(text));
  }

  async close(): Promise<void> {
    try {
      await this.scope.close();
    } finally {
      await this.sandbox.close();
      await rm(this.folder, { recursive: true, force: true });
    }
  }
}
