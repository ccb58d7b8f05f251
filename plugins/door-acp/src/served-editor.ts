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
import type { RunRequest } from "@ambit/client";
import type { StdioCall, UserFolder } from "@ambit/core/plugin";
import { Editor } from "./editor.js";
import { requestErrorOf } from "./failure.js";
import { FolderSessions, type StoredTurn } from "./folder-sessions.js";
import { mcpServersOf } from "./mcp-servers.js";
import type { CommandOptions } from "./options.js";
import { AcpSession } from "./session.js";
import {
  chosenIn,
  configOptionsOf,
  efforts,
  modeStateOf,
  nothingChosen,
  optionsWith,
  requireMode,
} from "./settings.js";

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
  readonly #sessions = new Map<string, AcpSession>();
  #capabilities: ClientCapabilities = {};

  constructor(
    readonly call: StdioCall,
    readonly options: CommandOptions,
  ) {}

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
        const { session, turns } = await this.#reopen(params.sessionId, params, client);
        await session.show(turns);
        return stateOf(session);
      })
      .onRequest("session/resume", async ({ params, client }) => {
        const { cwd, mcpServers = [], sessionId } = params;
        const { session } = await this.#reopen(sessionId, { cwd, mcpServers }, client);
        return stateOf(session);
      })
      .onRequest("session/list", async ({ params: { cwd } }) => {
        if (cwd === undefined || cwd === null) return { sessions: [] };
        const folder = await this.#folder(cwd);
        const listed = await this.#sessionsOf(folder).list();
        return { sessions: listed.map((session) => ({ ...session, cwd })) };
      })
      .onRequest("session/close", async ({ params: { sessionId } }) => {
        await this.#close(sessionId);
        return {};
      })
      .onRequest("session/delete", async ({ params: { sessionId } }) => {
        await this.#close(sessionId);
        await FolderSessions.ofSession(sessionId, this.call.fetch)?.delete(sessionId);
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
        await session.choose({ mode: requireMode(session.choices, session.chosen, modeId) });
        return {};
      })
      .onRequest("session/set_config_option", async ({ params }) => {
        const session = this.#session(params.sessionId);
        await session.choose({
          options: optionsWith(session.choices, session.chosen, params.configId, params.value),
        });
        return { configOptions: configOptionsOf(session.choices, session.chosen) };
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
    const session = await this.#open(folder, this.#sessionsOf(folder).newId(), [], opening, client);
    return { sessionId: session.id, ...stateOf(session) };
  }

  /** A session of an earlier process, or of this one. @throws RequestError for one of another folder */
  async #reopen(sessionId: string, opening: Opening, client: AgentContext) {
    const folder = await this.#folder(opening.cwd);
    const sessions = this.#sessionsOf(folder);
    const turns = await sessions.turns(sessionId);
    if (turns.length === 0)
      throw new RequestError(
        -32_002,
        `There is no session '${sessionId}' of ${folder.path}: begin a new one`,
        {
          sessionId,
        },
      );
    const live = this.#sessions.get(sessionId);
    const session = await this.#open(folder, sessionId, turns, opening, client);
    if (live === undefined) return { session, turns };
    await live.close();
    // Its turn may have gone on until now.
    return { session, turns: await sessions.turns(sessionId) };
  }

  #sessionsOf(folder: UserFolder): FolderSessions {
    return FolderSessions.of(folder.path, this.call.fetch);
  }

  /** @param turns earlier ones. @throws RequestError with every reason why the agent can't run there */
  async #open(
    folder: UserFolder,
    id: string,
    turns: readonly StoredTurn[],
    { mcpServers, additionalDirectories }: Opening,
    client: AgentContext,
  ): Promise<AcpSession> {
    if (additionalDirectories?.length)
      throw RequestError.invalidParams(
        undefined,
        `additionalDirectories: the agent works in one folder, and can't reach ${additionalDirectories.join(", ")}: leave them out`,
      );
    const sessions = this.#sessionsOf(folder);
    const runsSession = sessions.newSession(id);
    folder.giveTo(runsSession);
    const template = this.#template(this.options.withoutMcp ? [] : mcpServers);
    const { models } = this.options;
    const editor = new Editor(client, this.#capabilities);
    const parts = { id, runsSession, editor, folder, sessions, login: this.#login };
    const bare = new AcpSession(
      { ...parts, choices: { template, models, efforts: [] } },
      nothingChosen,
      true,
    );
    await bare.plan();
    const choices = { template, models, efforts: await this.#effortsOf(bare) };
    const latest = turns.findLast(({ request }) => request !== undefined)?.request;
    const chosen = latest === undefined ? nothingChosen : chosenIn(latest, choices);
    const session = new AcpSession({ ...parts, choices }, chosen, turns.length === 0);
    this.#sessions.set(session.id, session);
    return session;
  }

  /** Those with which the agent would run. */
  async #effortsOf(session: AcpSession) {
    const offered = await Promise.all(
      efforts.map((effort) =>
        session.plan({ options: { effort } }).then(
          () => [effort],
          () => [],
        ),
      ),
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
  const { choices, chosen } = session;
  return { modes: modeStateOf(choices, chosen), configOptions: configOptionsOf(choices, chosen) };
}
