import { access, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Agent, type Harness, type PermissionMode, runRequestSchema } from "@ambit/core/plugin";
import { type ModelServer, startModelServer } from "@ambit/model-server";
import { BareSandbox } from "../control/bare-sandbox.js";
import { runTurn, type TurnOptions, type TurnResult } from "../harness/turn.js";
import { KitScope, silentLog } from "../stage/kit-scope.js";
import type { OwnToolCall, OwnToolsCase } from "./own-tools-case.js";

const key = "key-for-the-scripted-model";

/** A real agent in an unconfined sandbox, with a scripted model that makes the given calls. */
export class OwnToolsStage {
  private constructor(
    readonly sandbox: BareSandbox,
    readonly model: ModelServer,
    readonly agent: Agent,
    readonly scope: KitScope,
  ) {}

  /** @param mode the request's default permission. */
  static async open(
    { request, planted }: Pick<OwnToolsCase, "request" | "planted">,
    harness: Harness,
    mode: PermissionMode,
  ): Promise<OwnToolsStage> {
    const scope = new KitScope();
    try {
      const model = await startModelServer({ expectedKey: key });
      scope.defer(() => model.close());
      const sandbox = await BareSandbox.open({ user: undefined, confinement: "unconfined", env: {} });
      scope.defer(() => sandbox.close());
      await writeFiles(sandbox.workspace, { ...planted?.workspace, "x.txt": "a" });
      await writeFiles(sandbox.home, planted?.home ?? {});
      const agent = await harness.start({
        sandbox,
        servers: [],
        request: runRequestSchema.parse({
          ...request({ url: model.url, key }),
          permissions: { default: mode },
        }),
        log: silentLog,
        signal: scope.signal,
        defer: (close) => scope.defer(close),
      });
      return new OwnToolsStage(sandbox, model, agent, scope);
    } catch (error) {
      await scope.close();
      throw error;
    }
  }

  /** A turn in which the model makes this one call. */
  call({ tool, input }: OwnToolCall, options: TurnOptions): Promise<TurnResult> {
    return this.turn(`[[call =${tool} ${JSON.stringify(input)}]]`, options);
  }

  /** A turn in which the model runs this command in the agent's shell. */
  shell(command: string, options: TurnOptions): Promise<TurnResult> {
    return this.turn(`[[shell ${command}]]`, options);
  }

  turn(text: string, options: TurnOptions): Promise<TurnResult> {
    return runTurn(this.agent, text, options);
  }

  /** Names of the tools that the agent has offered its model so far. */
  offered(): readonly string[] {
    return [...new Set(this.model.requests.flatMap(({ toolNames }) => toolNames))];
  }

  /** Whether a call has created its file. */
  async acted(): Promise<boolean> {
    return access(join(this.sandbox.workspace, "made")).then(
      () => true,
      () => false,
    );
  }

  async forget(): Promise<void> {
    await rm(join(this.sandbox.workspace, "made"), { force: true });
  }

  close(): Promise<void> {
    return this.scope.close();
  }
}

async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
  }
}
