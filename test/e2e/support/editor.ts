import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import {
  type ClientCapabilities,
  type ClientConnection,
  type ContentBlock,
  client,
  ndJsonStream,
  type PromptResponse,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk/unstable";

/** What the editor does about a question. */
export type Answer = (
  asked: RequestPermissionRequest,
  signal: AbortSignal,
) => Promise<RequestPermissionResponse>;

export const choosing =
  (optionId: string): Answer =>
  async () => ({ outcome: { outcome: "selected", optionId } });

export interface EditorOptions {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  readonly capabilities?: ClientCapabilities;
  /** Texts of files that aren't saved, by path. */
  readonly unsaved?: Readonly<Record<string, string>>;
}

/** An editor that has started an agent: the official SDK's client side, over the agent's stdin and stdout. */
export class TestEditor {
  readonly updates: { readonly sessionId: string; readonly update: SessionUpdate }[] = [];
  readonly questions: RequestPermissionRequest[] = [];
  /** Default: once. */
  answer: Answer = choosing("allow");
  /** Called with each update. */
  onUpdate: (update: SessionUpdate) => void = () => {};
  readonly child: ChildProcess;
  readonly connection: ClientConnection;
  readonly exit: Promise<number | null>;
  #log = "";

  constructor({ command, cwd, env, user, capabilities = {}, unsaved = {} }: EditorOptions) {
    const [program = "", ...args] = command;
    const child = spawn(program, args, {
      cwd,
      env: { PATH: process.env.PATH, ...env },
      stdio: ["pipe", "pipe", "pipe"],
      ...user,
    });
    this.child = child;
    this.exit = once(child, "exit").then(([code]) => code);
    child.stderr.on("data", (bytes: Buffer) => {
      this.#log += String(bytes);
    });
    this.capabilities = capabilities;
    this.connection = client({ name: "test" })
      .onNotification("session/update", ({ params }) => {
        this.updates.push(params);
        this.onUpdate(params.update);
      })
      .onRequest("session/request_permission", async ({ params, signal }) => {
        this.questions.push(params);
        return await this.answer(params, signal);
      })
      .onRequest("fs/read_text_file", ({ params: { path } }) => ({ content: unsaved[path] ?? "" }))
      .connect(ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));
  }

  readonly capabilities: ClientCapabilities;

  get log(): string {
    return this.#log;
  }

  get agent(): ClientConnection["agent"] {
    return this.connection.agent;
  }

  async initialize() {
    return await this.agent.request("initialize", {
      protocolVersion: 1,
      clientCapabilities: this.capabilities,
    });
  }

  async newSession(cwd: string, more: object = {}) {
    return await this.agent.request("session/new", { cwd, mcpServers: [], ...more });
  }

  async prompt(sessionId: string, ...prompt: readonly (string | ContentBlock)[]): Promise<PromptResponse> {
    return await this.agent.request("session/prompt", {
      sessionId,
      prompt: prompt.map((block) => (typeof block === "string" ? textBlock(block) : block)),
    });
  }

  /** Updates of a kind, in a session. */
  of<Kind extends SessionUpdate["sessionUpdate"]>(sessionId: string, kind: Kind) {
    return this.updates.flatMap((one) =>
      one.sessionId === sessionId && isOf(one.update, kind) ? [one.update] : [],
    );
  }

  /** The agent's words in a session. */
  said(sessionId: string): string {
    return this.of(sessionId, "agent_message_chunk")
      .map(({ content }) => (content.type === "text" ? content.text : `<${content.type}>`))
      .join("");
  }

  /** Leaves, and waits for the agent's end. */
  async leave(): Promise<number | null> {
    this.child.stdin?.end();
    return await this.exit;
  }
}

const textBlock = (text: string): ContentBlock => ({ type: "text", text });

function isOf<Kind extends SessionUpdate["sessionUpdate"]>(
  update: SessionUpdate,
  kind: Kind,
): update is Extract<SessionUpdate, { sessionUpdate: Kind }> {
  return update.sessionUpdate === kind;
}
