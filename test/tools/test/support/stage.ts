import { createRequire } from "node:module";
import callback from "@ambit/executor-callback";
import client from "@ambit/executor-client";
import code from "@ambit/executor-code";
import acp from "@ambit/harness-acp";
import mcpClient from "@ambit/mcp-client";
import mcp from "@ambit/mcp-http";
import type { PermissionCeiling, Runner } from "@ambit/runner";
import local from "@ambit/sandbox-local";
import { type ConfigurationInput, openAmbit, startServer, takeEnvironment } from "ambit";
import { LiveRun } from "./live-run.js";

const require = createRequire(import.meta.url);
/** The folder in whose `node_modules` npm installed the agents. */
const [folder = ""] = require.resolve("@agentclientprotocol/codex-acp/package.json").split("/node_modules/");

export interface StageOptions {
  /** `prefer`: runs without a boundary aren't confined, for controls. */
  readonly unconfined?: "allow" | "prefer";
  readonly limits?: ConfigurationInput["limits"];
  readonly deny?: PermissionCeiling;
  readonly token?: string;
}

/** The default plugins with all three agents, and MCP servers on loopback allowed. */
function configurationOf({ unconfined = "allow", limits, deny }: StageOptions): ConfigurationInput {
  return {
    plugins: [
      { use: local, config: { unconfined } },
      { use: acp, config: { profiles: ["demo", "gemini", "codex"], folder } },
      mcp,
      { use: mcpClient, config: { allowedRanges: ["127.0.0.0/8"], loopbackWithoutTls: true } },
      callback,
      code,
      client,
    ],
    ...(limits === undefined ? {} : { limits }),
    ...(deny === undefined ? {} : { permissions: { deny: deny === true ? true : [...deny] } }),
  };
}

/** Ambit in this process: the runner and, if a test needs HTTP, its server. */
export class Stage {
  private constructor(
    readonly runner: Runner,
    readonly url: string | undefined,
    readonly close: () => Promise<void>,
  ) {}

  static async open(options: StageOptions = {}): Promise<Stage> {
    const ambit = await openAmbit(opening(options));
    return new Stage(ambit.runner, undefined, () => ambit.runner.drain(0));
  }

  /** The same with a server on a free port. */
  static async serve(options: StageOptions = {}): Promise<Stage> {
    const ambit = await openAmbit(opening(options));
    const server = await startServer(ambit);
    return new Stage(ambit.runner, server.url, () => server.close());
  }

  /** Starts a run, whose events are read as they arrive. */
  begin(request: object): Promise<LiveRun> {
    return LiveRun.begin(this.runner, request);
  }

  /** Runs to the end. */
  async run(request: object): Promise<LiveRun> {
    const run = await this.begin(request);
    await run.result;
    return run;
  }
}

function opening(options: StageOptions): Parameters<typeof openAmbit>[0] {
  const environment = takeEnvironment({
    AMBIT_PORT: "0",
    ...(options.token === undefined ? {} : { AMBIT_TOKEN: options.token }),
  });
  return { environment, configuration: configurationOf(options), logLevel: "silent" };
}
