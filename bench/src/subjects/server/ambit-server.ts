import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "@ambit/backend-kit";
import { HttpCaller } from "../../http.js";
import { type Program, pause, startProgram } from "../../machine/program.js";
import { type TemporaryFolder, temporaryFolder } from "../../machine/temporary-folder.js";

/** The installed command. */
export const ambitEntry = fileURLToPath(new URL("../bin/ambit.mjs", import.meta.resolve("ambit")));

export interface ServerOptions {
  /** The command. Default: this version's. */
  readonly entry?: string | undefined;
  /** For runs without a boundary. `prefer`, the default: unconfined. `allow`: confined if the host can. */
  readonly unconfined?: "allow" | "prefer";
  /** Loaded before the plugins that come with Ambit: packages, or absolute paths. */
  readonly plugins?: readonly (string | { readonly use: string; readonly config: object })[];
  /** Whether it has all default plugins, with a store on disk. Default false: only those that a run of an agent needs. */
  readonly hasDefaults?: boolean;
  /** Configuration of harness-acp. */
  readonly harness?: object;
  /** Further configuration of sandbox-local. */
  readonly sandbox?: object;
  readonly limits?: object;
  /** Options of Node.js, such as `--cpu-prof`. */
  readonly nodeOptions?: readonly string[];
  readonly webhooks?: object;
  readonly probes?: object;
  /** The operator's. Default: none is required. */
  readonly token?: string;
  /** Whether the server has a listener of its own for `/health` and `/ready`. */
  readonly answersHealthApart?: boolean;
}

export interface AmbitServer extends AsyncDisposable {
  readonly url: string;
  /** Of its health listener, if it has one. */
  readonly healthUrl: string | undefined;
  readonly program: Program;
  /** Its data folder. */
  readonly dataFolder: string;
  readonly caller: HttpCaller;
}

/** `ambit serve` as a real process on loopback. Resolves when it is healthy and has probed this host. */
export async function startAmbit(options: ServerOptions = {}): Promise<AmbitServer> {
  const folder = await temporaryFolder();
  const port = await freePort();
  const healthPort = options.answersHealthApart ? await freePort() : undefined;
  const serving = await serveArguments(folder, port, options);
  const program = startProgram(options.entry ?? ambitEntry, {
    ...serving,
    environment: {
      ...serving.environment,
      ...(healthPort === undefined ? {} : { AMBIT_HEALTH_PORT: String(healthPort) }),
    },
    nodeOptions: options.nodeOptions ?? [],
  });
  const url = `http://127.0.0.1:${port}`;
  const caller = new HttpCaller(url, options.token);
  await healthy(program, caller, 2);
  while ((await caller.get("/health")).text.includes('"probing":true')) await pause(20);
  return {
    url,
    healthUrl: healthPort === undefined ? undefined : `http://127.0.0.1:${healthPort}`,
    program,
    dataFolder: join(folder.path, "data"),
    caller,
    [Symbol.asyncDispose]: async () => {
      caller.close();
      await program.stop();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** The environment and configuration for `ambit serve`. */
export async function serveArguments(
  folder: TemporaryFolder,
  port: number,
  options: ServerOptions = {},
): Promise<{
  readonly arguments: string[];
  readonly environment: Record<string, string>;
  readonly folder: string;
}> {
  const { unconfined = "prefer", plugins = [], harness = {}, sandbox = {} } = options;
  const { limits = {}, probes = {}, webhooks, token, hasDefaults = false } = options;
  const stored = [
    { use: "@ambit/store-sqlite", config: { file: join(folder.path, "runs.sqlite") } },
    { use: "@ambit/blobs-folder", config: { folder: join(folder.path, "blobs") } },
  ];
  const configuration = {
    extends: hasDefaults ? "defaults" : "none",
    plugins: [
      ...plugins,
      {
        use: "@ambit/sandbox-local",
        config: { dataFolder: join(folder.path, "data"), unconfined, ...sandbox },
      },
      { use: "@ambit/harness-acp", config: harness },
      "@ambit/mcp-http",
      "@ambit/executor-callback",
      "@ambit/executor-client",
      ...(hasDefaults ? stored : []),
    ],
    limits,
    probes,
    webhooks,
    workspace: { preparedFolder: join(folder.path, "prepared") },
  };
  const file = join(folder.path, "ambit.config.json");
  await writeFile(file, JSON.stringify(configuration));
  return {
    arguments: ["serve", "--port", String(port), "--config", file],
    environment: {
      HOME: folder.path,
      AMBIT_LOG_LEVEL: "error",
      ...(token === undefined ? { AMBIT_AUTH: "none" } : { AMBIT_TOKEN: token }),
    },
    folder: folder.path,
  };
}

/** Resolves when `GET /health` responds with 200. Repeats the request after this many milliseconds. */
export async function healthy(program: Program, caller: HttpCaller, everyMs: number): Promise<void> {
  for (;;) {
    if (program.child.exitCode !== null) throw new Error(`the server left: ${program.lastWords()}`);
    try {
      if ((await caller.get("/health")).status === 200) return;
    } catch {
      // It doesn't listen yet.
    }
    await pause(everyMs);
  }
}
