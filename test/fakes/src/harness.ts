import type { AgentEvent, ContentBlock, Domain, Issue, RunRequest } from "@ambit/core/contract";
import type {
  Agent,
  Harness,
  HiddenCredential,
  ModelUse,
  OwnTools,
  PreparedAgent,
  PreparedStart,
  Prewarm,
  RequiredPath,
  StartScope,
  Turn,
} from "@ambit/core/plugin";
import { allCapabilities } from "./capabilities.js";
import type { CallOptions, ConnectedTools, FakeDelivery } from "./delivery.js";

/** What a script may do during its turn. */
export interface ScriptedTurn {
  readonly signal: AbortSignal;
  readonly prompt: readonly ContentBlock[];
  readonly scope: StartScope;
  readonly ask: Turn["onPermission"];
  readonly onInput: Turn["onInput"];
  readonly warn: Turn["warn"];
  /** A published server, listed at once; the request's own tools without a name. */
  tools(server?: string): ConnectedTools;
}

export type Script = (turn: ScriptedTurn) => AsyncIterable<AgentEvent>;

export interface HarnessBehaviour {
  readonly id?: string;
  readonly aliases?: readonly string[];
  readonly maxToolCallMs?: number;
  readonly supportsPermissionRequests?: boolean;
  readonly ownTools?: OwnTools;
  readonly visibleCredentials?: (request: RunRequest) => readonly string[];
  readonly hideableCredentials?: (request: RunRequest) => readonly HiddenCredential[];
  readonly issues?: (request: RunRequest) => readonly Issue[];
  readonly model?: (request: RunRequest) => ModelUse | undefined;
  /** What the agent lists. */
  readonly models?: readonly string[];
  /** Default: none is started ahead. */
  readonly prewarm?: readonly Prewarm[];
  /** What is asked of an agent that was started ahead. Default: it fits, and did nothing. */
  readonly ahead?: Partial<PreparedAgent>;
  onPrepare?(start: PreparedStart): Promise<void> | void;
  onStart?(scope: StartScope): Promise<void> | void;
  onClose?(): Promise<void> | void;
}

/** An agent that does what the test's script says, one script a turn; the last one again when they run out. */
export class ScriptedHarness implements Harness {
  readonly name: string;
  readonly id: string;
  readonly aliases: readonly string[];
  readonly site = "sandbox";
  readonly claims = [];
  readonly maxToolCallMs: number;
  readonly supportsPermissionRequests: boolean;
  readonly ownTools?: OwnTools;
  readonly prewarm: readonly Prewarm[];
  readonly prepared: PreparedStart[] = [];
  readonly starts: StartScope[] = [];
  readonly prompts: (readonly ContentBlock[])[] = [];
  scripts: Script[] = [];
  closed = 0;
  /** Whether the agents that were started can take another turn. */
  exited = false;
  /** Whether the program of the agents that were started was replaced. */
  outdated = false;
  /** The host's files that its agents need. */
  paths: readonly string[] = [];
  /** Whether it can't load a stored conversation. */
  forgets = false;

  constructor(
    readonly delivery: FakeDelivery,
    readonly behaviour: HarnessBehaviour = {},
  ) {
    this.id = behaviour.id ?? "scripted";
    this.name = this.id;
    this.aliases = behaviour.aliases ?? [];
    this.maxToolCallMs = behaviour.maxToolCallMs ?? 60_000;
    this.supportsPermissionRequests = behaviour.supportsPermissionRequests ?? true;
    this.prewarm = behaviour.prewarm ?? [];
    if (behaviour.ownTools !== undefined) this.ownTools = behaviour.ownTools;
  }

  touches(): readonly Domain[] {
    return ["network", "filesystem", "process", "environment", "resources", "secrets"];
  }

  gaps(): [] {
    return [];
  }

  async probe(): Promise<[]> {
    return [];
  }

  issues(request: RunRequest): readonly Issue[] {
    return this.behaviour.issues?.(request) ?? [];
  }

  requiredPaths(): readonly RequiredPath[] {
    return this.paths.map((path) => ({ path, what: "the agent" }));
  }

  visibleCredentials(request: RunRequest): readonly string[] {
    return this.behaviour.visibleCredentials?.(request) ?? [];
  }

  hideableCredentials(request: RunRequest): readonly HiddenCredential[] {
    return this.behaviour.hideableCredentials?.(request) ?? [];
  }

  model(request: RunRequest): ModelUse | undefined {
    return this.behaviour.model?.(request);
  }

  async prepare(start: PreparedStart): Promise<PreparedAgent> {
    this.prepared.push(start);
    await this.behaviour.onPrepare?.(start);
    const never = new Promise<void>(() => undefined);
    return { misfit: () => undefined, fault: () => undefined, ended: never, ...this.behaviour.ahead };
  }

  async start(scope: StartScope): Promise<Agent> {
    this.starts.push(scope);
    await this.behaviour.onStart?.(scope);
    this.exited = false;
    this.outdated = false;
    let isClosed = false;
    return {
      conversation: `conversation-${this.starts.length}`,
      history: scope.resume === undefined || this.forgets ? "new" : "loaded",
      capabilities: allCapabilities,
      evidence: { pid: 1 },
      model: "scripted-1",
      ...(this.behaviour.models === undefined ? {} : { models: this.behaviour.models }),
      prompt: ({ prompt, signal, onPermission, onInput, warn }) => {
        this.prompts.push(prompt);
        const script = this.scripts.length > 1 ? this.scripts.shift() : this.scripts[0];
        if (script === undefined) throw new Error("the test gave no script");
        const tools = (name = "ambit") => this.#connect(scope, name);
        return script({ signal, prompt, scope, ask: onPermission, onInput, warn, tools });
      },
      ended: () => isClosed || this.exited,
      isOutdated: () => this.outdated,
      close: async () => {
        if (isClosed) return;
        isClosed = true;
        this.closed += 1;
        await this.behaviour.onClose?.();
      },
    };
  }

  #connect(scope: StartScope, name: string): ConnectedTools {
    const server = scope.servers.find((candidate) => candidate.name === name);
    if (server === undefined) throw new Error(`there is no server '${name}'`);
    const tools = this.delivery.connect(server);
    tools.list();
    return tools;
  }
}

export const done: AgentEvent = { type: "done", stopReason: "end_turn" };

/** Says one thing. */
export const says = (text: string): Script =>
  async function* () {
    yield { type: "message", text };
    yield done;
  };

/** Calls one tool, reports the call and its result as a real agent does, and ends its turn when it is told to. */
export const calls = (
  name: string,
  given: Record<string, unknown> = {},
  options: CallOptions & { readonly server?: string } = {},
): Script =>
  async function* ({ tools, signal }) {
    const id = options.id ?? "call-1";
    yield { type: "tool_call", id, name, input: given };
    const answer = tools(options.server).call(name, given, { signal, ...options });
    const outcome = await untilAborted(signal, answer);
    if (outcome !== undefined)
      yield { type: "tool_result", id, output: outcome.output, isError: outcome.isError };
    yield outcome === undefined ? { type: "done", stopReason: "cancelled" } : done;
  };

/** The value, or undefined as soon as the signal aborts. */
export function untilAborted<Value>(signal: AbortSignal, value: Promise<Value>): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
    value.then(resolve, reject);
  });
}

/** Never settles, whatever happens. */
export function forever(): Promise<never> {
  return new Promise(() => {});
}
