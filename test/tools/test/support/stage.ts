import type { PermissionCeiling, Runner } from "@ambit/runner";
import { type Ambit, type ConfigurationInput, openAmbit, startServer, takeEnvironment } from "ambit";
import { folder } from "./installed.js";
import { LiveRun } from "./live-run.js";

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
      { use: "@ambit/sandbox-local", config: { unconfined } },
      { use: "@ambit/harness-acp", config: { profiles: ["demo", "gemini", "codex"], folder } },
      "@ambit/mcp-http",
      { use: "@ambit/mcp-client", config: { allowedRanges: ["127.0.0.0/8"], loopbackWithoutTls: true } },
      "@ambit/executor-callback",
      "@ambit/executor-code",
      "@ambit/executor-client",
    ],
    // What one file's probe found is kept for the next.
    probes: { keepAcrossRestarts: true },
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
    const ambit = await opened(options);
    const { runner, registry, evidence } = ambit;
    return new Stage(runner, undefined, async () => {
      await runner.drain(0);
      await evidence?.keep(registry);
    });
  }

  /** The same with a server on a free port. */
  static async serve(options: StageOptions = {}): Promise<Stage> {
    const ambit = await opened(options);
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

function opened(options: StageOptions): Promise<Ambit> {
  const { token } = options;
  const environment = takeEnvironment({
    AMBIT_PORT: "0",
    ...(token === undefined ? { AMBIT_AUTH: "none" } : { AMBIT_TOKEN: token }),
  });
  return openAmbit({ environment, configuration: configurationOf(options), logLevel: "silent" });
}
