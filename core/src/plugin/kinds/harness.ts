import type { Boundary } from "../../boundary.js";
import type {
  AgentEvent,
  ContentBlock,
  Evidence,
  FileChange,
  FileLocation,
  HarnessCapabilities,
  Issue,
  JsonObject,
  RunRequest,
} from "../../contract/index.js";
import type { Actor, ActorGap } from "../actor.js";
import type { Log, Scope, TraceContext } from "../scope.js";
import type { PublishedServer } from "./delivery.js";
import type { ModelRoute, ModelUse } from "./model-gateway.js";
import type { HiddenCredential, RequiredPath, Rootfs, Sandbox, SandboxContents } from "./sandbox.js";

/** The class of an agent's own tool. A permission's pattern can name all tools of a class. */
export const toolClasses = ["shell", "edit", "read", "fetch"] as const;
export type ToolClass = (typeof toolClasses)[number];

/** An agent's own tools by name, each with its class. */
export type OwnTools = Readonly<Record<string, ToolClass | "other">>;

/** A program that a plugin needs and can install, pinned to a version and checked against its digests. */
export interface Installation {
  /** Names the program in messages: "Claude Code". */
  readonly title: string;
  /** The packages that `install` brings, with their exact versions. */
  readonly packages: readonly { readonly name: string; readonly version: string }[];
  /**
   * The installed version, and the one that the plugin was tested with; undefined if it isn't installed. If the program is
   * an adapter, `agent` is the agent behind it with its own version, and with its tested version unless the adapter's version
   * determines it.
   */
  installed():
    | {
        readonly version: string;
        readonly tested: string;
        readonly path: string;
        readonly agent?: { readonly name: string; readonly version: string; readonly tested?: string };
      }
    | undefined;
  /**
   * Installs the program, or leaves the earlier version in place.
   * @param progress receives lines to show.
   * @throws HarnessFailed whose message says what to do.
   */
  install(progress: (line: string) => void): Promise<{ readonly path: string }>;
}

/** An agent's question for permission to call a tool. */
export interface PermissionQuestion {
  readonly toolCallId: string;
  /** The published tool's name without the server's prefix, or the agent's own tool (`Bash`, `write_file`). */
  readonly toolName: string;
  /** The publication that the tool belongs to; absent for the agent's own tools. */
  readonly server?: string;
  readonly input: unknown;
  /** Whether the agent declares that the call only reads. */
  readonly readOnly?: boolean;
  /** The class of the agent's own tool. Default: the class that {@link Harness.ownTools} has for its name. */
  readonly toolClass?: ToolClass;
  /** The changes to files that the call would make, and the files that it names. Default: unknown. */
  readonly changes?: FileChange[];
  readonly locations?: FileLocation[];
}

export type PermissionDecision = "allow" | "deny" | "park";

/** A question that isn't about permission: the agent wants values for a flat form (a JSON Schema), or a visit to a page. */
export interface InputQuestion {
  readonly message: string;
  readonly form?: JsonObject;
  readonly url?: string;
}

/** An answer to an {@link InputQuestion}. `content` holds the form's values, none for a page. `park` ends the turn. */
export type InputAnswer =
  | { readonly action: "accept"; readonly content: JsonObject }
  | { readonly action: "decline" }
  | "park";

/** The cause of a start that takes too long, as far as it is known. */
export interface LateStart {
  /** One sentence that is added to the failure's message, without a credential. */
  readonly sentence: string;
  /** Whether another attempt may be faster. */
  readonly retryable: boolean;
}

export interface StartScope extends Scope {
  readonly sandbox: Sandbox;
  readonly servers: readonly PublishedServer[];
  readonly request: RunRequest;
  /** Whether the operator denies tools that the request's permissions might allow. Default: false. */
  readonly deniesTools?: boolean;
  /** Where the agent reaches its model. Absent: it uses the real endpoint with the real credential. */
  readonly model?: ModelRoute;
  /** The stored conversation to continue: the value of an earlier `Agent.conversation`. */
  readonly resume?: string;
  /** The agent to use, which this harness started ahead in `sandbox`, and which fits. Default: a new agent. */
  readonly prepared?: PreparedAgent;
  /** Called when the agent's process runs. The runner calls `describeDelay` if the start takes too long. */
  explain?(describeDelay: () => LateStart | undefined): void;
  readonly log: Log;
}

/** Agents that a deployer wants started before a run needs them. */
export interface Prewarm {
  /** The most agents that wait for a run. */
  readonly agents: number;
  /** Milliseconds after which an agent that no run has claimed is ended. */
  readonly idleMs: number;
  /** Whether the runs' requests have their own tools. */
  readonly tools: boolean;
  /** The part of a request that decides how the agent starts. Its credentials are stand-ins for those of the runs. */
  readonly request: JsonObject;
}

/** The part of a start that is needed before the agent's process exists. */
export interface PreparedStart extends Pick<StartScope, "request" | "deniesTools" | "model"> {
  /** The names of the servers that the agent will get. */
  readonly serverNames: readonly string[];
}

/** A started agent without a conversation. It belongs to no session until a run claims it, and then to that run's session. */
export interface PreparedAgent {
  /** The reason why this start needs a different agent; undefined if this one fits. Pure. */
  misfit(start: PreparedStart): string | undefined;
  /** What the agent has done that no fresh one does; undefined for nothing. @param contents of its sandbox now */
  fault(contents: SandboxContents): string | undefined;
  /** Whether the program was replaced since the agent started, so that no run may claim it. Default: false. */
  isOutdated?(): boolean;
  /** Settles when the agent's process has ended. Never rejects. */
  readonly ended: Promise<void>;
}

/** One turn of a conversation. The agent receives the trace context with the prompt (`_meta`). */
export interface Turn extends TraceContext {
  readonly prompt: readonly ContentBlock[];
  /** Aborts on cancellation and at time limits; the agent is notified and has a moment to end its turn. */
  readonly signal: AbortSignal;
  /**
   * Responds to the agent's permission requests. It may take as long as a call may stay open. `park` ends the turn: the call
   * isn't made, and the agent gets no response that would let it continue.
   * @param withdrawn aborts when the agent takes the question back, which ends it; the response is `deny` then. Default: never.
   */
  onPermission(question: PermissionQuestion, withdrawn?: AbortSignal): Promise<PermissionDecision>;
  /**
   * Responds to the agent's questions that aren't about permission. Absent: all are declined.
   * @param withdrawn aborts when the agent takes the question back; the response is then to decline. Default: never.
   */
  onInput?(question: InputQuestion, withdrawn?: AbortSignal): Promise<InputAnswer>;
  /**
   * Adds a warning to the run's result about something that the turn's events can't show, such as updates that came too late.
   * The message is one sentence, without a credential.
   */
  warn?(message: string): void;
}

/** The events of one turn. An async generator satisfies this interface. */
export interface AgentEvents extends AsyncIterable<AgentEvent> {
  [Symbol.asyncIterator](): AgentEventIterator;
}

export interface AgentEventIterator extends AsyncIterator<AgentEvent> {
  /**
   * Returns the next event if it has already arrived, which saves a promise for each of many events that arrive together.
   * The runner doesn't call it while a `next()` is pending. Default: the runner awaits each event.
   */
  ready?(): AgentEvent | undefined;
}

/** A started agent with one open conversation. */
export interface Agent {
  /** Identifies the conversation for a later `resume`. */
  readonly conversation: string;
  /** `loaded` if the agent restored the conversation that `resume` named. */
  readonly history: "new" | "loaded";
  readonly capabilities: HarnessCapabilities;
  readonly evidence: Evidence;
  /** The model in use, where the agent reports it. */
  readonly model?: string;
  /** The models that the agent lists, by its own names. Default: none. */
  readonly models?: readonly string[];
  /**
   * Begins a turn; one turn runs at a time. The events end with a `done` event. The iteration throws `HarnessFailed` or
   * `ModelFailed`, also for an error that the agent presents as a successful end of its turn.
   */
  prompt(turn: Turn): AgentEvents;
  /**
   * Hands a message of the user to the agent during a turn. False if the agent didn't take it, since the turn has just ended.
   * Default: the agent takes no message before its turn has ended.
   * @throws HarnessFailed for content that the agent can't take
   */
  steer?(content: readonly ContentBlock[], signal: AbortSignal): Promise<boolean>;
  /** Whether the agent can take no further turn: it has exited, was killed, or was closed. */
  ended(): boolean;
  /** Whether the program was replaced since the agent started: the session's next run gets a new agent. Default: false. */
  isOutdated?(): boolean;
  /** Asks the agent to exit, then kills it. Safe to call twice. */
  close(): Promise<void>;
}

export interface Harness extends Actor<RunRequest> {
  /** The name in requests. */
  readonly id: string;
  /** Other names that requests may use. */
  readonly aliases: readonly string[];
  /**
   * Whether the agent asks before each use of its own tools, harmless ones included, regardless of settings in its workspace.
   * If not, permissions for such tools can't be enforced: the run is refused unless the request's default allows every tool
   * that no rule names. True for an agent without its own tools.
   */
  readonly supportsPermissionRequests: boolean;
  /**
   * The agent's own tools by the names that its questions use, so that patterns can name them by class, and a pattern
   * that matches none causes a warning. Default: unknown.
   */
  readonly ownTools?: OwnTools;
  /** Where the agent looks for skills, relative to its workspace. Default: `.agents/skills`. */
  readonly skillsFolder?: string;
  /** Milliseconds after which the agent gives up on a tool call. */
  readonly maxToolCallMs: number;
  /** How the agent's program is installed. Default: it is part of the plugin, or the plugin can't install it. */
  readonly installation?: Installation;
  /**
   * The reasons why this agent can't run this request: it isn't installed, or doesn't know the model. Pure.
   * @param rootfs the sandbox's files: an image's contents aren't known before the sandbox is open.
   * @param isRouted whether a model gateway carries the use that `model` returns.
   */
  issues(request: RunRequest, rootfs: Rootfs, isRouted: boolean): readonly Issue[];
  /**
   * How this request's agent uses its model. Undefined for an agent without a model, or whose base URL can't be set.
   * Default: undefined. Pure.
   */
  model?(request: RunRequest): ModelUse | undefined;
  /** The parts of the boundary that an agent can't cover if it connects to its model directly. Default: none. Pure. */
  directModelGaps?(boundary: Boundary, request: RunRequest): readonly ActorGap[];
  /** The host's files that the sandbox must contain: visible, copied or mounted, by its `rootfs`. Pure. */
  requiredPaths(rootfs: Rootfs): readonly RequiredPath[];
  /**
   * The names of the request's credentials that programs in the sandbox can read. A login that is passed on to the agent has
   * the name {@link subscriptionPath}. Pure.
   */
  visibleCredentials(request: RunRequest): readonly string[];
  /**
   * Those of the visible credentials that the agent only sends to its model. A sandbox may hide them; the agent then gets
   * the values of `Sandbox.placeholders` instead. Default: none. Pure.
   */
  hideableCredentials?(request: RunRequest): readonly HiddenCredential[];
  start(scope: StartScope): Promise<Agent>;
  /** The agents to start ahead. Default: none. */
  readonly prewarm?: readonly Prewarm[];
  /** Starts an agent as far as possible without a run. It ends with the sandbox. Present if `prewarm` is. */
  prepare?(scope: PreparedStart & Pick<StartScope, "signal" | "sandbox" | "log">): Promise<PreparedAgent>;
}
