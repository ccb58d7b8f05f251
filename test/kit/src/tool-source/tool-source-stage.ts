import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freshSecret, waitForLine } from "@ambit/attacks";
import type { Command, McpServer, Process, Publication, Sandbox, ToolSource } from "@ambit/core/plugin";
import { BareSandbox } from "../control/bare-sandbox.js";
import { boundaryOf } from "../executor/execute.js";
import { KitScope, silentLog } from "../stage/kit-scope.js";
import { mcpProgram, type ServerScript } from "./mcp-program.js";

/** One scripted MCP server, and the source that publishes its tools. */
export class ToolSourceStage {
  readonly scope = new KitScope();
  /** Used as a credential of the server. */
  readonly secret = freshSecret();
  /** What the source started inside. */
  readonly spawned: Process[] = [];

  private constructor(
    readonly source: ToolSource,
    readonly sandbox: BareSandbox,
    readonly folder: string,
    readonly server: McpServer["connection"],
    readonly program: string,
  ) {}

  static async open(source: ToolSource, script: ServerScript): Promise<ToolSourceStage> {
    const folder = await mkdtemp(join(tmpdir(), "ambit-kit-mcp-"));
    const program = join(folder, "server.mjs");
    await writeFile(program, mcpProgram(script));
    const sandbox = await BareSandbox.open({ user: undefined, confinement: "unconfined", env: {} });
    const connection =
      source.connection === "stdio"
        ? { type: "stdio" as const, command: process.execPath, args: [program] }
        : { type: "http" as const, url: await listen(sandbox, program) };
    return new ToolSourceStage(source, sandbox, folder, connection, program);
  }

  /** The request's entry for the server, with the secret in the field for it. */
  serverOf(more: Partial<Pick<McpServer, "policy">> = {}): McpServer {
    const { server, secret } = this;
    const connection =
      server.type === "stdio"
        ? { ...server, env: { KIT_SECRET: secret } }
        : {
            ...server,
            credentials: [
              {
                binding: { kind: "header" as const, name: "x-kit" },
                value: secret,
                usage: "opaque_http" as const,
              },
            ],
          };
    return { name: "kit", connection, ...more };
  }

  connect(server = this.serverOf()): Promise<Publication> {
    const { scope } = this;
    return this.source.connect(server, {
      boundary: boundaryOf({}),
      sandbox: this.#watched(),
      log: silentLog,
      signal: scope.signal,
      defer: (close) => scope.defer(close),
    });
  }

  async close(): Promise<void> {
    try {
      await this.scope.close();
    } finally {
      await this.sandbox.close();
      await rm(this.folder, { recursive: true, force: true });
    }
  }

  #watched(): Sandbox {
    const { sandbox, spawned } = this;
    return {
      workspace: sandbox.workspace,
      home: sandbox.home,
      confinement: sandbox.confinement,
      evidence: sandbox.evidence,
      spawn: async (command: Command) => {
        const started = await sandbox.spawn(command);
        spawned.push(started);
        return started;
      },
      writeFiles: (files) => sandbox.writeFiles(files),
      readFile: (path) => sandbox.readFile(path),
      expose: (handler) => sandbox.expose(handler),
      close: () => sandbox.close(),
    };
  }
}

/** Starts the server, to be closed with the sandbox. Resolves with its URL. */
async function listen(sandbox: BareSandbox, program: string): Promise<string> {
  const started = await sandbox.spawn({ argv: [process.execPath, program, "http"], env: {}, role: "tool" });
  const url = await waitForLine(started.stdout, "http://");
  if (url === undefined) throw new Error("the kit's MCP server didn't start");
  return url.trim();
}
