import * as acp from "@agentclientprotocol/sdk/unstable";
import {
  type Command,
  HarnessFailed,
  type Process,
  type PublishedServer,
  type Sandbox,
} from "@ambit/core/plugin";
import { type DriverLimits, defaultDriverLimits, MessageIntake } from "../../src/driver/limits.js";
import { type AgentLaunchPlan, type AgentVersions, startAgent } from "../../src/driver/start-agent.js";
import { demo } from "../../src/profiles/demo.js";
import type { Profile } from "../../src/profiles/profile.js";
import { TestScope } from "./runs.js";

export interface FakeTurn {
  readonly sessionId: string;
  readonly signal: AbortSignal;
  /** Aborts when the prompt itself is cancelled by `$/cancel_request`. */
  readonly cancelRequest: AbortSignal;
  /** Sends any value as a `session/update`, including what agents send in violation of ACP. */
  update(update: object): Promise<void>;
  /** Writes a line unchanged. */
  line(text: string): Promise<void>;
  /** Writes a part of a line. */
  piece(text: string): Promise<void>;
  /** `session/request_permission`; aborting `signal` withdraws it by `$/cancel_request`. */
  ask(params: object, signal?: AbortSignal): Promise<unknown>;
  /** `elicitation/create`; the same. */
  elicit(params: object, signal?: AbortSignal): Promise<unknown>;
  exit(code: number): Promise<never>;
}

export interface FakeAgentOptions {
  readonly onPrompt: (turn: FakeTurn) => Promise<unknown>;
  /** Called with each message that arrives, as it was sent. True: the fake doesn't read it itself. */
  readonly onMessage?: (line: string) => boolean;
  readonly initialize?: unknown;
  readonly versions?: AgentVersions;
  readonly newSession?: unknown;
  /** Called with the signal of `$/cancel_request` for any request of a start or an end; it answers when this settles. */
  readonly onSessionRequest?: (method: string, cancelRequest: AbortSignal) => Promise<unknown>;
  /** Whether it reads its input after its first prompt. Default: true. */
  readonly readsAnswers?: boolean;
  readonly onLoad?: (turn: FakeTurn) => Promise<unknown>;
  readonly profile?: Partial<Profile>;
  readonly limits?: Partial<DriverLimits>;
  /** Default: one of its own. */
  readonly intake?: MessageIntake;
  readonly launch?: Partial<AgentLaunchPlan>;
  readonly resume?: string;
  readonly request?: object;
  readonly servers?: { readonly servers: readonly PublishedServer[] };
}

export const limits = {
  ...defaultDriverLimits,
  cancelMs: 5_000,
  closeMs: 0,
  messageCharacters: 1_000_000,
  bufferedCharacters: 4_096,
};

/** An agent in this process, connected through the streams of a process. */
export function fakeAgent(options: FakeAgentOptions) {
  const toAgent = new TransformStream<Uint8Array, Uint8Array>();
  const fromAgent = new TransformStream<Uint8Array, Uint8Array>();
  let exited: (exit: { code: number | null; signal: string | null }) => void = () => {};
  const exit = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    exited = resolve;
  });
  const received: string[] = [];
  const asked: unknown[] = [];
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();

  const output = fromAgent.writable.getWriter();
  const write = (text: string) => output.write(encoder.encode(`${text}\n`));
  const reading = new TransformStream<Uint8Array, Uint8Array>({
    transform: async (bytes, controller) => {
      const { onMessage } = options;
      const lines = onMessage === undefined ? [] : decoder.decode(bytes).split("\n");
      if (!lines.some((line) => line !== "" && onMessage?.(line) === true)) controller.enqueue(bytes);
      if (options.readsAnswers === false && prompts.length > 0) await new Promise(() => {});
    },
  });
  const stream: acp.Stream = {
    readable: acp.ndJsonStream(new WritableStream<Uint8Array>(), toAgent.readable.pipeThrough(reading))
      .readable,
    writable: new WritableStream<acp.AnyMessage>({ write: (message) => write(JSON.stringify(message)) }),
  };
  const running = new Map<string, AbortController>();
  const turnOf = (sessionId: string, client: acp.AgentContext, cancelRequest: AbortSignal): FakeTurn => {
    const controller = new AbortController();
    running.set(sessionId, controller);
    return {
      sessionId,
      signal: controller.signal,
      cancelRequest,
      update: (update) =>
        write(JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } })),
      line: write,
      piece: (text) => output.write(encoder.encode(text)),
      ask: async (params, signal) => {
        const answer = await client.request<unknown, object>(
          "session/request_permission",
          { sessionId, ...params },
          signal === undefined ? {} : { cancellationSignal: signal },
        );
        asked.push(answer);
        return answer;
      },
      elicit: (params, signal) =>
        client.request<unknown, object>(
          "elicitation/create",
          { sessionId, ...params },
          signal === undefined ? {} : { cancellationSignal: signal },
        ),
      exit: async (code) => {
        exited({ code, signal: null });
        await output.close();
        return await new Promise<never>(() => {});
      },
    };
  };
  const session = (params: unknown): string => {
    if (typeof params === "object" && params !== null && "sessionId" in params)
      return String(params.sessionId);
    return "";
  };
  const anything = (params: unknown): unknown => params;
  const sessions: unknown[] = [];
  const choices: unknown[] = [];
  const prompts: unknown[] = [];
  const closed: unknown[] = [];
  const greetings: unknown[] = [];
  const chosen = (method: string, params: unknown) => {
    choices.push({ method, params });
    if (JSON.stringify(params).includes("unknown")) throw new acp.RequestError(-32602, "no such choice");
    return {};
  };
  acp
    .agent({ name: "fake" })
    .onRequest("initialize", anything, ({ params }) => {
      greetings.push(params);
      return options.initialize ?? initialized;
    })
    .onRequest("session/new", anything, async ({ params, signal }) => {
      sessions.push(params);
      await options.onSessionRequest?.("session/new", signal);
      return options.newSession ?? { sessionId: "s1" };
    })
    .onRequest("session/load", anything, async ({ params, client, signal }) => {
      await options.onSessionRequest?.("session/load", signal);
      return (await options.onLoad?.(turnOf(session(params), client, signal))) ?? {};
    })
    .onRequest("session/close", anything, async ({ params, signal }) => {
      closed.push(params);
      await options.onSessionRequest?.("session/close", signal);
      return {};
    })
    .onRequest("session/set_mode", anything, ({ params }) => chosen("session/set_mode", params))
    .onRequest("session/set_model", anything, async ({ params, signal }) => {
      await options.onSessionRequest?.("session/set_model", signal);
      return chosen("session/set_model", params);
    })
    .onRequest("session/set_config_option", anything, ({ params }) =>
      chosen("session/set_config_option", params),
    )
    .onRequest("session/prompt", anything, ({ params, client, signal }) => {
      prompts.push(params);
      return options.onPrompt(turnOf(session(params), client, signal));
    })
    .onNotification("session/cancel", anything, ({ params }) => {
      received.push("session/cancel");
      running.get(session(params))?.abort();
    })
    .connect(stream);

  const process: Process = {
    stdin: toAgent.writable,
    stdout: fromAgent.readable,
    stderr: new ReadableStream({ start: (controller) => controller.close() }),
    evidence: {},
    exit,
    kill: async (signal = "SIGKILL") => exited({ code: null, signal }),
  };
  const sandbox: Sandbox = {
    workspace: "/workspace",
    home: "/home",
    confinement: "unconfined",
    evidence: {},
    spawn: async (_: Command) => process,
    writeFiles: async () => {},
    readFile: async () => new Uint8Array(),
    expose: () => Promise.reject(new HarnessFailed("not here")),
    close: async () => {},
  };
  let opened: TestScope | undefined;
  const start = async () => {
    const scope = new TestScope(sandbox, {
      resume: options.resume,
      request: options.request,
      ...options.servers,
    });
    opened = scope;
    const agent = await startAgent(
      {
        profile: { ...demo, title: "The fake", ...options.profile },
        versions: options.versions,
        isOutdated: () => false,
        launch: {
          argv: ["fake"],
          obeyed: [],
          env: {},
          files: [],
          workspaceFiles: [],
          model: "",
          requiresListed: false,
          sessionMeta: {},
          session: {},
          ...options.launch,
        },
        limits: { ...limits, ...options.limits },
        intake: options.intake ?? new MessageIntake({ ...limits, ...options.limits }),
      },
      scope,
    );
    return { agent, scope };
  };
  /** The scope of a start. */
  const scope = () => opened;
  return { start, scope, exit, received, asked, sessions, choices, prompts, closed, greetings };
}

const initialized = {
  protocolVersion: 1,
  agentCapabilities: { loadSession: true, mcpCapabilities: { http: true } },
  authMethods: [],
};

export const endTurn = { stopReason: "end_turn", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } };

export function chunk(text: string): object {
  return { sessionUpdate: "agent_message_chunk", content: { type: "text", text } };
}
