import { realpathSync } from "node:fs";
import { delimiter, dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  type Domain,
  type Exit,
  inject,
  LineSplitter,
  type McpServer,
  type Publication,
  pluginTokens,
  TextEnd,
  type ToolSource,
  type ToolSourceScope,
} from "@ambit/core/plugin";
import { Replacements, replaceIn, replacementsFor } from "@ambit/egress";
import type { McpClientConfig } from "./config.js";
import type { Channel } from "./connections.js";
import { MessageGuard } from "./message-guard.js";

/** Characters, in whole lines, of a server's output that an error quotes: they often give the reason. */
const maxOutputLength = 1_000;
/** Milliseconds until an ended server's output has arrived. */
const maxWaitMs = 1_000;

/** Bytes of a line that is logged. */
const maxLineBytes = 2_000;

/** Reads a server's stderr, which would block it when unread, logs it, and keeps its end. */
export class LastWords {
  readonly #read: Promise<void>;
  readonly #end = new TextEnd(maxOutputLength);

  /**
   * @param log called with each line: a secret that is split between two writes is complete in its line, where the log
   * recognises it. Of a line that is too long it gets only the length, since truncating might leave half a secret.
   */
  constructor(stream: ReadableStream<Uint8Array>, log: (line: string) => void) {
    const lines = new LineSplitter({
      maxBytes: maxLineBytes,
      standIn: (characters) => `[a line of ${characters} characters]`,
    });
    const logWritten = (line: string) => {
      if (line.trim() !== "") log(line);
    };
    const reading = stream.pipeTo(
      new WritableStream({
        write: (chunk) => {
          this.#end.push(chunk);
          for (const line of lines.push(chunk)) logWritten(line);
        },
      }),
    );
    // The server was killed: no more output follows.
    this.#read = reading.catch(() => {}).finally(() => logWritten(lines.end() ?? ""));
  }

  /** After the server has ended. A process that it left behind may hold its output open: that isn't waited for. */
  async all(): Promise<string> {
    await Promise.race([this.#read, delay(maxWaitMs, undefined, { ref: false })]);
    // The rest of a truncated line might be part of a secret, which redaction wouldn't recognise.
    return this.#end.lines.trim();
  }
}

/** Shorter values occur in any text. */
const minHiddenLength = 8;

/**
 * A short text without the values of an environment, nor lines of them, in any form: the agent may not see those of a
 * server. Pure.
 */
export function withoutValues(text: string, environment: Readonly<Record<string, string>>): string {
  const values = Object.values(environment).flatMap((value) => [value, ...value.split(/\r?\n/)]);
  const hidden = values.filter(({ length }) => length >= minHiddenLength && length <= text.length);
  const replacements = new Replacements(hidden.flatMap((value) => replacementsFor(value, "*")));
  return replaceIn(text, replacements, "utf8");
}

/**
 * MCP servers over stdio, each a separate process in the sandbox: it inherits every guarantee, and neither the agent
 * nor a tool sees its environment if the sandbox guarantees that.
 */
export class StdioToolSource implements ToolSource {
  readonly name = "mcp-stdio-client";
  readonly connection = "stdio";
  readonly site = "sandbox";
  readonly claims = [];

  constructor(@inject(pluginTokens.config) readonly config: McpClientConfig) {}

  touches(): readonly Domain[] {
    return ["network", "filesystem", "process", "environment", "resources"];
  }

  gaps(): [] {
    return [];
  }

  issues(): [] {
    return [];
  }

  probe(): Promise<[]> {
    return Promise.resolve([]);
  }

  async connect(server: McpServer, scope: ToolSourceScope): Promise<Publication> {
    const { connection } = server;
    if (connection.type !== "stdio") throw new Error(`'${server.name}' is not a stdio server.`);
    // The MCP SDK takes tens of milliseconds to load, so only runs with such a server load it.
    const { publicationOf } = await import("./publication.js");
    const { SandboxStdioTransport } = await import("./transport/stdio.js");
    const { image } = scope.sandbox;
    const onRunner = [this.config.path, dirname(realpathSync(process.execPath))].join(delimiter);
    const path = image?.searchPath ?? onRunner;
    const openChannel = async (): Promise<Channel> => {
      const spawned = await scope.sandbox.spawn({
        argv: [connection.command, ...(connection.args ?? [])],
        env: { PATH: path, LANG: "C.UTF-8", ...connection.env },
        role: "tool",
        signal: scope.signal,
      });
      const words = new LastWords(spawned.stderr, (text) =>
        scope.log.debug({ server: server.name, text }, "a stdio MCP server wrote to stderr"),
      );
      const guard = new MessageGuard(this.config);
      const transport = new SandboxStdioTransport(spawned, guard);
      return {
        transport,
        guard,
        hasEnded: () => transport.hasEnded,
        ending: async () => {
          const hide = (text: string) => withoutValues(text, connection.env ?? {});
          const how = `${howEnded(transport.exit)}${hide(guard.strayText)}`;
          return { how, output: hide(await words.all()) };
        },
      };
    };
    return await publicationOf(server, openChannel, scope);
  }
}

function howEnded(exit: Exit | undefined): string {
  if (exit === undefined) return "";
  return exit.signal === null ? ` (exit code ${exit.code})` : ` (${exit.signal})`;
}
