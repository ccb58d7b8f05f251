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
  /** As in messages: "Claude Code". */
  readonly title: string;
  /** The packages that `install` brings, with their exact versions. */
  readonly packages: readonly { readonly name: string; readonly version: string }[];
  /**
   * The installed version, and the one that the plugin was tested with; undefined if it isn't installed. Where that is an adapter,
   * `agent` is the agent behind it, with its own version, and the tested one unless the adapter's decides about it.
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
   * Installs it, or leaves the earlier version in place.
   * @param progress receives lines to show.
   * @throws HarnessFailed with what to do about it.
   */
  install(progress: (line: string) => void): Promise<{ readonly path: string }>;
}

/** What an agent asks permission for. */
export interface PermissionQuestion {
  readonly toolCallId: string;
  /** The published tool's name without the server's prefix, or the agent's own tool (`Bash`, `write_file`). */
  readonly toolName: string;
  /** The publication it belongs to; absent for the agent's own tools. */
  readonly server?: string;
  readonly input: unknown;
  /** Whether the agent declares that it only reads. */
  readonly readOnly?: boolean;
  /** The class of the agent's own tool. Default: the class that {@link Harness.ownTools} has for its name. */
  readonly toolClass?: ToolClass;
  /** The changes of files that it would make, and the files that it names. Default: unknown. */
  readonly changes?: FileChange[];
  readonly locations?: FileLocation[];
}

export type PermissionDecision = "allow" | "deny" | "park";

/** A question of the agent that isn't about permission: values of a flat form (its JSON Schema), or a page to visit. */
export interface InputQuestion {
  readonly message: string;
  readonly form?: JsonObject;
  readonly url?: string;
}

/** `content`: the form's values; empty for a page. `park` ends the turn, as for a permission. */
export type InputAnswer =
  | { readonly action: "accept"; readonly content: JsonObject }
  | { readonly action: "decline" }
  | "park";

/** What is known of a start that takes too long. */
export interface LateStart {
  /** Added to the failure's message: one sentence, without a credential. */
  readonly sentence: string;
  /** Whether another attempt may be faster. */
  readonly retryable: boolean;
}

export interface StartScope extends Scope {
  readonly sandbox: Sandbox;
  readonly servers: readonly PublishedServer[];
  readonly request: RunRequest;
  /** Whether the operator denies tools that the request's permissions may allow. Default: false. */
  readonly deniesTools?: boolean;
  /** Where the agent reaches its model. Absent: at the real endpoint, with the real credential. */
  readonly model?: ModelRoute;
  /** The stored conversation to continue, as an earlier `Agent.conversation` named it. */
  readonly resume?: string;
  /** The agent to use, which this harness has started ahead in `sandbox` and found to fit. Default: a new one. */
  readonly prepared?: PreparedAgent;
  /** Called once the agent runs. `why` is asked if its start takes too long. */
  explain?(why: () => LateStart | undefined): void;
  readonly log: Log;
}

/** Agents that a deployer wants started before anyone asks for them. */
export interface Prewarm {
  /** The maximum that waits. */
  readonly agents: number;
  /** Milliseconds after which one that nobody asked for is ended. */
  readonly idleMs: number;
  /** Whether the runs have tools of their own. */
  readonly tools: boolean;
  /** The part of a request that decides how the agent starts. Its credentials stand for those of runs: it has no real one. */
  readonly request: JsonObject;
}

/** The part of a start that has to be known before the agent's process exists. */
export interface PreparedStart extends Pick<StartScope, "request" | "deniesTools" | "model"> {
  /** Names of the servers that the agent will get. */
  readonly serverNames: readonly string[];
}

/** A started agent without a conversation. It belongs to nobody until a run gets it, and then to that run's session. */
export interface PreparedAgent {
  /** Why a new agent would be started differently; undefined if it wouldn't. Pure. */
  misfit(start: PreparedStart): string | undefined;
  /** What it has done that no fresh agent of its kind does; undefined for nothing. @param found in its sandbox now */
  fault(found: SandboxContents): string | undefined;
  /** Whether its program was replaced since it started, so that no run can have it. Default: false. */
  isOutdated?(): boolean;
  /** Settles when its process has ended. Never rejects. */
  readonly ended: Promise<void>;
}

/** Its trace context is sent to the agent with the prompt (`_meta`). */
export interface Turn extends TraceContext {
  readonly prompt: readonly ContentBlock[];
  /** Aborts on cancel and on time limits; the agent is notified and gets a moment to end its turn. */
  readonly signal: AbortSignal;
  /**
   * Responds to the agent's permission requests; may take as long as a call may be held. `park` ends the turn: the call
   * isn't made, and the agent gets no response that would let it continue.
   * @param withdrawn aborts when the agent takes the question back, which ends it; the response is `deny` then. Default: never.
   */
  onPermission(question: PermissionQuestion, withdrawn?: AbortSignal): Promise<PermissionDecision>;
  /**
   * Responds to what the agent asks its user for. Absent: everything is declined.
   * @param withdrawn as for a permission; the response declines then.
   */
  onInput?(question: InputQuestion, withdrawn?: AbortSignal): Promise<InputAnswer>;
  /**
   * Tells the caller, with the run's result, what the events of this turn can't show, such as updates that came too late.
   * One sentence, without a credential.
   */
  warn?(message: string): void;
}

/** The events of one turn. An async generator is one. */
export interface AgentEvents extends AsyncIterable<AgentEvent> {
  [Symbol.asyncIterator](): AgentEventIterator;
}

export interface AgentEventIterator extends AsyncIterator<AgentEvent> {
  /**
   * The next event, if it has already arrived, which saves a promise for each of many that arrive together. Not called
   * while a `next()` is pending. Default: none.
   */
  ready?(): AgentEvent | undefined;
}

/** A started agent with one open conversation. */
export interface Agent {
  /** Names the conversation for a later `resume`. */
  readonly conversation: string;
  /** How the conversation began: whether the agent restored what `resume` named. */
  readonly history: "new" | "loaded";
  readonly capabilities: HarnessCapabilities;
  readonly evidence: Evidence;
  /** The model in use, where the agent reports it. */
  readonly model?: string;
  /** The models that it lists, by its own names. Default: it lists none. */
  readonly models?: readonly string[];
  /**
   * One turn. Ends with a `done` event; throws `HarnessFailed` or `ModelFailed`, also for an error that the
   * agent presents as a successful end of its turn. One turn at a time.
   */
  prompt(turn: Turn): AgentEvents;
  /**
   * Hands a message of the user to the agent while it is in a turn. False if it took none, since its turn has just ended.
   * Default: it takes none before its turn has ended.
   * @throws HarnessFailed for content that the agent can't take
   */
  steer?(content: readonly ContentBlock[], signal: AbortSignal): Promise<boolean>;
  /** Whether it can take no further turn: it has exited, was killed, or was closed. */
  ended(): boolean;
  /** Whether its program was replaced since it started: its session's next run gets a new one. Default: false. */
  isOutdated?(): boolean;
  /** Asks the agent to exit, then kills it. Safe to call twice. */
  close(): Promise<void>;
}

export interface Harness extends Actor<RunRequest> {
  /** As the request names it. */
  readonly id: string;
  /** Other names the request may use. */
  readonly aliases: readonly string[];
  /**
   * Whether it asks before each use of its own tools, harmless ones included, regardless of settings in its workspace.
   * If not, permissions for such tools can't be enforced: the run is refused unless the request's default allows what
   * no rule names. True for an agent without its own tools.
   */
  readonly supportsPermissionRequests: boolean;
  /**
   * The agent's own tools by the names that its questions use, so that patterns can name them by class, and a pattern
   * that matches none causes a warning. Default: unknown.
   */
  readonly ownTools?: OwnTools;
  /** Where the agent looks for skills, relative to its workspace. Default: `.agents/skills`. */
  readonly skillsFolder?: string;
  /** Milliseconds the agent lets one tool call wait before it gives up. */
  readonly maxToolCallMs: number;
  /** How its program is installed. Default: it is part of the plugin, or the plugin can't install it. */
  readonly installation?: Installation;
  /**
   * Why this agent can't run this request: not installed, an unknown model. Pure.
   * @param rootfs of the sandbox: an image's contents aren't known before it is opened.
   * @param isRouted whether a model gateway carries what `model` returns.
   */
  issues(request: RunRequest, rootfs: Rootfs, isRouted: boolean): readonly Issue[];
  /**
   * How this request's agent uses its model. Undefined for an agent without one, or whose base URL can't be set. Default:
   * undefined. Pure.
   */
  model?(request: RunRequest): ModelUse | undefined;
  /** What an agent that connects to its model directly can't cover of the boundary. Default: nothing. Pure. */
  directModelGaps?(boundary: Boundary, request: RunRequest): readonly ActorGap[];
  /** Files of the host that the sandbox must show, or get a copy or a mount of. Pure. */
  requiredPaths(rootfs: Rootfs): readonly RequiredPath[];
  /**
   * Names of the request's credentials that can be read inside the sandbox. A login that is passed on to the agent has the
   * name {@link subscriptionPath}. Pure.
   */
  visibleCredentials(request: RunRequest): readonly string[];
  /**
   * Of those, the credentials that the agent only sends to its model. A sandbox may hide them; the agent then gets the
   * values of `Sandbox.placeholders` instead. Default: none. Pure.
   */
  hideableCredentials?(request: RunRequest): readonly HiddenCredential[];
  start(scope: StartScope): Promise<Agent>;
  /** The agents to start ahead. Default: none. */
  readonly prewarm?: readonly Prewarm[];
  /** Starts an agent up to where it needs something of a run. It ends with the sandbox. Present if `prewarm` is. */
  prepare?(scope: PreparedStart & Pick<StartScope, "signal" | "sandbox" | "log">): Promise<PreparedAgent>;
}
