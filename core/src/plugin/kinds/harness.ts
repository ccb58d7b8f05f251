import type { Boundary } from "../../boundary/index.js";
import type {
  AgentEvent,
  ContentBlock,
  Evidence,
  HarnessCapabilities,
  Issue,
  RunRequest,
} from "../../contract/index.js";
import type { Actor, ActorGap } from "../actor.js";
import type { Log } from "../log.js";
import type { Scope } from "../scope.js";
import type { PublishedServer } from "./delivery.js";
import type { Installation } from "./installation.js";
import type { ModelRoute, ModelUse } from "./model-gateway.js";
import type { OwnTools, ToolClass } from "./own-tools.js";
import type { HiddenCredential, RequiredPath, Rootfs, Sandbox } from "./sandbox.js";

/** What the agent wants to do and asks leave for. */
export interface PermissionQuestion {
  readonly toolCallId: string;
  /** The published tool's name without the server's prefix, or the agent's own tool (`Bash`, `write_file`). */
  readonly toolName: string;
  /** The publication it belongs to; absent for the agent's own tools. */
  readonly server?: string;
  readonly input: unknown;
  /** Whether the agent says that it only reads. */
  readonly readOnly?: boolean;
  /** What a tool of the agent's own does. Default: what {@link Harness.ownTools} says of its name. */
  readonly toolClass?: ToolClass;
}

export type PermissionDecision = "allow" | "deny" | "park";

export interface StartScope extends Scope {
  readonly sandbox: Sandbox;
  readonly servers: readonly PublishedServer[];
  readonly request: RunRequest;
  /** Where the agent finds its model; absent: at the real endpoint, with the real credential. */
  readonly model?: ModelRoute;
  /** Names the agent's stored conversation to go on with, as `Agent.conversation` gave it earlier. */
  readonly resume?: string;
  readonly log: Log;
}

export interface Turn {
  readonly prompt: readonly ContentBlock[];
  /** Aborts on cancel and on time limits; the agent is told and given a moment to end its turn. */
  readonly signal: AbortSignal;
  /**
   * Answers the agent's permission requests; may take as long as a call may be held. `park` ends the turn: the call
   * isn't made, and the agent gets no answer that would let it go on.
   */
  onPermission(question: PermissionQuestion): Promise<PermissionDecision>;
  /** To send to the agent with the prompt (`_meta.traceparent`). Absent where the run belongs to no trace. */
  readonly traceparent?: string;
}

/** A started agent with one open conversation. */
export interface Agent {
  /** Names the conversation for a later `resume`. */
  readonly conversation: string;
  /** How the conversation began: whether the agent restored what `resume` named. */
  readonly history: "new" | "loaded";
  readonly capabilities: HarnessCapabilities;
  readonly evidence: Evidence;
  /** The model in use, where the agent tells. */
  readonly model?: string;
  /**
   * One turn. Ends with a `done` event; throws `HarnessFailed` or `ModelFailed`, also for an error that the
   * agent presents as a successful end of its turn. One turn at a time.
   */
  prompt(turn: Turn): AsyncIterable<AgentEvent>;
  /** Whether it can take no further turn: it has exited, was killed, or was closed. */
  ended(): boolean;
  /** Asks the agent to leave, then kills it. Safe to call twice. */
  close(): Promise<void>;
}

export interface Harness extends Actor<RunRequest> {
  /** As the request names it. */
  readonly id: string;
  /** Other names the request may use. */
  readonly aliases: readonly string[];
  /**
   * Whether it asks before each use of a tool of its own, harmless ones included, whatever settings lie in its
   * workspace. If not, no permission for such a tool can be held: the run is refused unless the request's default
   * allows what no rule names. True for an agent without tools of its own.
   */
  readonly supportsPermissionRequests: boolean;
  /**
   * The agent's own tools by the names that its questions give, so that patterns can name them by what they do, and
   * one that names none is warned of. Default: unknown.
   */
  readonly ownTools?: OwnTools;
  /** Where the agent looks for skills, relative to its workspace. Default: `.agents/skills`. */
  readonly skillsFolder?: string;
  /** Milliseconds the agent lets one tool call wait before it gives up. */
  readonly maxToolCallMs: number;
  /** How its program is installed. Default: it comes along, or its plugin can't install it. */
  readonly installation?: Installation;
  /**
   * What keeps this request from being run by this agent: not installed, an unknown model. Pure.
   * @param rootfs of the sandbox: what an image holds isn't known before it is opened.
   * @param isRouted whether a model gateway carries what `model` tells of.
   */
  issues(request: RunRequest, rootfs: Rootfs, isRouted: boolean): readonly Issue[];
  /**
   * How this request's agent uses its model. Undefined for an agent that has none, or that can't be led to another base
   * URL. Default: undefined. Pure.
   */
  model?(request: RunRequest): ModelUse | undefined;
  /** What an agent that goes to its model by itself can't cover of the boundary. Default: nothing. Pure. */
  directModelGaps?(boundary: Boundary, request: RunRequest): readonly ActorGap[];
  /** What the sandbox must show, or be given, of the runner's files. Pure. */
  requiredPaths(rootfs: Rootfs): readonly RequiredPath[];
  /** Names of the request's credentials that can be read inside the sandbox. Pure. */
  visibleCredentials(request: RunRequest): readonly string[];
  /**
   * Those among them that the agent only sends to its model: a sandbox may hide them, and `Sandbox.placeholders` then
   * says what the agent is given in their place. Default: none. Pure.
   */
  hideableCredentials?(request: RunRequest): readonly HiddenCredential[];
  start(scope: StartScope): Promise<Agent>;
}
