import { isAbsolute } from "node:path";
import {
  type AgentContext,
  type AuthMethod,
  agent,
  type ClientCapabilities,
  type McpServer,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
} from "@agentclientprotocol/sdk/unstable";
import { AmbitClient, type RunRequest } from "@ambit/client";
import type { StdioCall, UserFolder } from "@ambit/core/plugin";
import { Editor } from "./editor.js";
import { requestErrorOf } from "./failure.js";
import { deleteSession, type KeptSession, KeptSessions } from "./kept-session.js";
import { mcpServersOf } from "./mcp-servers.js";
import type { CommandOptions } from "./options.js";
import { AcpSession } from "./session.js";
import { configOptionsOf, efforts, modeStateOf, optionsWith, requireMode } from "./settings.js";

/** Bytes of one message: a prompt with images. */
const maxMessageBytes = 32 * 1_048_576;

/** Serves one editor, until it leaves or the call's signal aborts. */
export async function serveEditor(call: StdioCall, options: CommandOptions): Promise<void> {
  const served = new ServedEditor(call, options);
  const connection = served.app.connect(ndJsonStream(call.output, call.input, { maxMessageBytes }));
  const leave = () => connection.close();
  call.signal.addEventListener("abort", leave, { once: true });
  if (call.signal.aborted) leave();
  await connection.closed;
  await served.close();
}

/** What a session begins with. */
interface Opening {
  readonly cwd: string;
  readonly mcpServers: readonly McpServer[];
  readonly additionalDirectories?: readonly string[] | null;
}

/** One editor, from its first message until it leaves. */
class ServedEditor {
  readonly #client: AmbitClient;
  readonly #sessions = new Map<string, AcpSession>();
  #capabilities: ClientCapabilities = {};

  constructor(
    readonly call: StdioCall,
    readonly options: CommandOptions,
  ) {
    this.#client = new AmbitClient({ fetch: call.fetch });
  }

  get app() {
    return agent({ name: "ambit" })
      .onRequest("initialize", ({ params }) => {
        this.#capabilities = params.clientCapabilities ?? {};
        return {
          protocolVersion: PROTOCOL_VERSION,
          agentInfo: { name: "ambit", title: this.#title, version: "0.1.0" },
          agentCapabilities: {
            loadSession: true,
            promptCapabilities: { image: true, embeddedContext: true },
            mcpCapabilities: { http: true },
            sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {} },
          },
          authMethods: this.#authMethods,
        };
      })
      .onRequest("authenticate", () => this.#authenticate())
      .onRequest("session/new", ({ params, client }) => this.#new(params, client))
      .onRequest("session/load", async ({ params, client }) => {
        const session = await this.#reopen(params.sessionId, params, client);
        await session.resume(true);
        return stateOf(session);
      })
      .onRequest("session/resume", async ({ params, client }) => {
        const { cwd, mcpServers = [], sessionId } = params;
        const session = await this.#reopen(sessionId, { cwd, mcpServers }, client);
        await session.resume(false);
        return stateOf(session);
      })
      .onRequest("session/list", async ({ params: { cwd } }) => {
        if (cwd === undefined || cwd === null) return { sessions: [] };
        const folder = await this.#folder(cwd);
        const listed = await new KeptSessions(folder.path).list();
        return {
          sessions: listed.map(({ sessionId, title, updatedAt }) => ({
            sessionId,
            cwd,
            updatedAt: new Date(updatedAt).toISOString(),
            ...(title === undefined ? {} : { title }),
          })),
        };
      })
      .onRequest("session/close", async ({ params: { sessionId } }) => {
        await this.#close(sessionId);
        return {};
      })
      .onRequest("session/delete", async ({ params: { sessionId } }) => {
        await this.#close(sessionId);
        await deleteSession(sessionId);
        return {};
      })
      .onRequest("session/prompt", ({ params: { sessionId, prompt } }) =>
        this.#session(sessionId).prompt(prompt),
      )
      .onNotification("session/cancel", ({ params: { sessionId } }) =>
        this.#sessions.get(sessionId)?.cancel(),
      )
      .onRequest("session/set_mode", async ({ params: { sessionId, modeId } }) => {
        const session = this.#session(sessionId);
        const mode = requireMode(session.choices, session.kept, modeId);
        await session.plan({ mode });
        await session.choose({ mode });
        return {};
      })
      .onRequest("session/set_config_option", async ({ params }) => {
        const session = this.#session(params.sessionId);
        const options = optionsWith(session.choices, session.kept, params.configId, params.value);
        await session.plan({ options });
        await session.choose({ options });
        return { configOptions: configOptionsOf(session.choices, session.kept) };
      });
  }

  /** Its turns end, and its agents. */
  async close(): Promise<void> {
    const sessions = [...this.#sessions.keys()];
    await Promise.allSettled(sessions.map((id) => this.#close(id)));
  }

  get #title(): string {
    const { harness } = this.options.template;
    return harness === undefined ? "Ambit" : `${harness} in Ambit`;
  }

  get #model() {
    const { harness, model } = this.options.template;
    return this.call.user.modelConnection(harness, model);
  }

  /** What the user does where the agent has no key. Undefined: it needs none. */
  get #login(): string | undefined {
    const { variables } = this.#model;
    if (variables.length === 0 || this.options.template.modelConnection !== undefined) return undefined;
    const names = variables.join(", ");
    return `Set ${names}${variables.length > 1 ? ", one of these," : ""} in the environment of ambit acp (the settings of this agent in your editor), and start it again.`;
  }

  get #authMethods(): AuthMethod[] {
    const login = this.#login;
    return login === undefined
      ? []
      : [{ id: "environment", name: "A key in the environment", description: login }];
  }

  #authenticate(): object {
    const login = this.#login;
    if (login === undefined || this.#model.connection !== undefined) return {};
    throw RequestError.authRequired(undefined, login);
  }

  async #new(opening: Opening, client: AgentContext) {
    const folder = await this.#folder(opening.cwd);
    const sessions = new KeptSessions(folder.path);
    const session = await this.#open(folder, sessions, sessions.newSession(), opening, client);
    return { sessionId: session.id, ...stateOf(session) };
  }

  /** A session of an earlier process, or of this one. @throws RequestError for one of another folder */
  async #reopen(sessionId: string, opening: Opening, client: AgentContext): Promise<AcpSession> {
    const folder = await this.#folder(opening.cwd);
    const sessions = new KeptSessions(folder.path);
    const kept = await sessions.read(sessionId);
    if (kept === undefined)
      throw new RequestError(
        -32_002,
        `There is no session '${sessionId}' of ${folder.path}: begin a new one`,
        {
          sessionId,
        },
      );
    await this.#close(sessionId);
    return await this.#open(folder, sessions, kept, opening, client);
  }

  /** @throws RequestError with every reason why the agent can't run there */
  async #open(
    folder: UserFolder,
    sessions: KeptSessions,
    kept: KeptSession,
    { mcpServers, additionalDirectories }: Opening,
    client: AgentContext,
  ): Promise<AcpSession> {
    if (additionalDirectories?.length)
      throw RequestError.invalidParams(
        undefined,
        `additionalDirectories: the agent works in one folder, and can't reach ${additionalDirectories.join(", ")}: leave them out`,
      );
    folder.giveTo(kept.sessionId);
    const template = this.#template(this.options.withoutMcp ? [] : mcpServers);
    const login = this.#login;
    const parts = {
      client: this.#client,
      editor: new Editor(client, this.#capabilities),
      folder,
      sessions,
      login,
    };
    const { models } = this.options;
    const bare = new AcpSession({ ...parts, choices: { template, models, efforts: [] } }, kept);
    await bare.plan();
    const choices = { template, models, efforts: await this.#effortsOf(bare) };
    const session = new AcpSession({ ...parts, choices }, kept);
    this.#sessions.set(session.id, session);
    return session;
  }

  /** Those with which the agent would run. */
  async #effortsOf(session: AcpSession) {
    const { options } = session.kept;
    const offered = await Promise.all(
      efforts.map(async (effort) => {
        const choices = { ...session.choices, efforts: [effort] };
        const trial = new AcpSession({ ...session.parts, choices }, session.kept);
        return await trial.plan({ options: { ...options, effort } }).then(
          () => [effort],
          () => [],
        );
      }),
    );
    return offered.flat();
  }

  #template(servers: readonly McpServer[]): RunRequest {
    const { template } = this.options;
    const { connection } = this.#model;
    return {
      ...template,
      mcpServers: [...(template.mcpServers ?? []), ...mcpServersOf(servers)],
      ...(connection === undefined || template.modelConnection !== undefined
        ? {}
        : { modelConnection: connection }),
    };
  }

  async #folder(cwd: string): Promise<UserFolder> {
    if (!isAbsolute(cwd))
      throw RequestError.invalidParams(undefined, `cwd must be an absolute path: '${cwd}'`);
    try {
      return await this.call.user.openFolder(cwd);
    } catch (error) {
      throw requestErrorOf(error);
    }
  }

  #session(sessionId: string): AcpSession {
    const session = this.#sessions.get(sessionId);
    if (session !== undefined) return session;
    throw new RequestError(-32_002, `There is no open session '${sessionId}': begin or load one`, {
      sessionId,
    });
  }

  async #close(sessionId: string): Promise<void> {
    const session = this.#sessions.get(sessionId);
    this.#sessions.delete(sessionId);
    await session?.close();
  }
}

function stateOf(session: AcpSession) {
  const { choices, kept } = session;
  return { modes: modeStateOf(choices, kept), configOptions: configOptionsOf(choices, kept) };
}
