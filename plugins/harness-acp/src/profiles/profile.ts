import type {
  Command,
  FileEntry,
  Issue,
  JsonObject,
  ModelProtocol,
  OwnTools,
  PublishedServer,
  ReasoningEffort,
  RequiredPath,
  RunRequest,
  Usage,
} from "@ambit/core/plugin";

/** Where an agent's program comes from. It is located on disk, never executed to find out whether it exists. */
export interface ProgramSource {
  /** npm package, as in the fix `npm install <package>`. */
  readonly package: string;
  /** Which of the package's `bin` entries. */
  readonly bin: string;
  /**
   * How it gets into a sandbox with a separate image: `installed` there, on its `PATH` under the name `bin`; `mounted`
   * from the runner where the sandbox mounts its files and it is installed there, else as `installed`; or `copied` from
   * the runner with the packages it needs (a few megabytes at most).
   */
  readonly inImage: "installed" | "mounted" | "copied";
  /** The package of the agent behind an adapter that has it among its dependencies, for its version. */
  readonly adapts?: string;
  /** The entry file, if this plugin contains the program. Default: looked up in `node_modules`. */
  readonly entry?: string;
  /** Whether its package contains everything that it imports. Default: the packages that it depends on are shown too. */
  readonly isBundled?: boolean;
  /** A further npm package that it needs but doesn't depend on: the agent of an adapter. */
  readonly companion?: {
    readonly package: string;
    readonly bin: string;
    /** The ECMAScript modules that are compiled once for all of its starts: globs in its entry's folder. Default: none. */
    readonly modules?: readonly string[];
  };
  /** For a binary in a separate package per platform: the first of these that is installed. */
  readonly native?: {
    packages(platform: NodeJS.Platform, architecture: string): readonly string[];
    /** The binary, in its package. */
    readonly file: string;
  };
  /**
   * A binary that its script would start by one more Node.js process: `prepare` gets it as `companion`, where it is
   * found. Where the program is the image's own, its script finds it.
   */
  readonly binary?: (platform: NodeJS.Platform, architecture: string) => PackagedBinary | undefined;
  /** Further files and folders of the runner that it needs: shown in a local sandbox at their own paths. */
  readonly files?: readonly RequiredPath[];
}

export interface PackagedBinary {
  /** The packages that lead to it, each a dependency of the one before; the first is one of the program's. */
  readonly packages: readonly string[];
  /** The binary, in the last of them. */
  readonly file: string;
}

/** How an agent reaches its model. */
export interface ModelAccess {
  /** Values of `modelConnection.provider` that it supports, also as a prefix of `model`: `google/…`. */
  readonly providers: readonly string[];
  /** Those of the prefixes of `model` that aren't part of the model's name. Default: `providers`. */
  readonly prefixes?: readonly string[];
  /** Variables that may hold its credential; messages name the first. */
  readonly credentials: readonly [string, ...string[]];
  /** Used if the request names no model. */
  readonly defaultModel: string;
  /** Whether it accepts a model that it doesn't list. Default: no, at the provider's own endpoint. */
  isKnown?(model: string): boolean;
  readonly endpoint: {
    /** The model's address unless the request names another. */
    readonly url: string;
    /** Variables of `modelConnection.environment` that change the address; the first is set for a model route. */
    readonly variables: readonly string[];
    /** The version at the end of its base URL, added where a given address lacks it. */
    readonly includes?: "/v1";
    /** The version that belongs to its paths: a given address may end with it too. */
    readonly excludes?: "/v1beta";
  };
  /** How a model gateway carries its requests. Absent: it can't use another base URL with another key. */
  readonly route?: RouteAccess;
}

export interface RouteAccess {
  /** The model API that the agent uses. */
  readonly protocol: ModelProtocol;
  /** The part of the API's path that its base URL includes. Default: `/v1` for `openai`, nothing for the others. */
  readonly basePath?: "" | "/v1";
  /** The variable that holds the route's key instead of a credential. Default: the first of `credentials`. */
  readonly keyVariable?: string;
  /** Patterns (`*` for any text) of models that it uses by itself, for example for titles. Default: none. */
  readonly auxiliaryModels?: readonly string[];
}

/** How an agent gets the level of its model's reasoning. */
export interface ReasoningAccess {
  /** The values of `reasoningEffort` that it knows, with its own names. What its model takes of them, it says itself. */
  readonly efforts: Readonly<Partial<Record<ReasoningEffort, string>>>;
  /** `session`: by its session's option of the category `thought_level`. `prepared`: `prepare` passes it. */
  readonly by: "session" | "prepared";
}

/** Where the agent sends its model requests. */
export interface ModelEndpoint {
  /** Absent: the agent's default. */
  readonly baseUrl?: string;
  /** Set if a model gateway carries the requests: replaces the API key. The real credential isn't inside. */
  readonly key?: string;
}

/** How the agent receives instructions besides the prompt. */
export interface Instructions {
  /** The workspace file that it reads as standing instructions: `AGENTS.md`. */
  readonly agentsFile: string;
  /** Where it looks for skills, in the workspace. Default: `.agents/skills`. */
  readonly skillsFolder?: string;
  /** Whether `prepare` applies `systemPrompt`, replacing the agent's own, and `appendSystemPrompt`. */
  readonly systemPrompt: boolean;
  readonly appendSystemPrompt: boolean;
  /** Values of `harnessMode` that it supports. */
  readonly modes: readonly string[];
}

/** A published server as the agent reaches it from inside. */
export type ToolEndpoint = Pick<PublishedServer, "name" | "url" | "headers">;

/**
 * A file or folder of the workspace that the agent would obey regardless of its settings: code that it loads, or
 * variables that change what it runs.
 */
export interface ObeyedPath {
  /** Relative to the workspace. */
  readonly path: string;
  /** It counts only if its content has one of these texts. Default: it counts if it exists. */
  readonly naming?: readonly [string, ...string[]];
  /** What these texts stand for, in messages: "plugins". */
  readonly what?: string;
}

/** Input for making the agent's files and variables. */
export interface Preparation {
  readonly request: RunRequest;
  /** Absolute, as seen inside. */
  readonly home: string;
  /** Absolute, as seen inside. */
  readonly workspace: string;
  /** A folder in `home` that doesn't exist yet and has a new name at each start: no earlier turn can have filled it. */
  readonly fresh: string;
  /** The request's model without its provider prefix, or the default; empty for an agent without a model. */
  readonly model: string;
  /** The agent's name for the request's reasoning effort; undefined if the request names none. */
  readonly effort?: string;
  /** The model gateway inside the sandbox, or the request's own endpoint. */
  readonly endpoint: ModelEndpoint;
  /** The model's credential inside: a gateway's token, a placeholder, or the credential itself. */
  readonly credential?: string;
  /** The command that starts the program's companion, or its binary; undefined if there is none. */
  readonly companion?: Command["argv"];
  /** What Node.js can load first, so that the companion isn't compiled again; a sandbox that is open already may lack it. */
  readonly compiled?: string;
  /** The MCP servers over HTTP that publish the run's tools, with the headers that they require. */
  readonly servers: readonly ToolEndpoint[];
  /** `PATH` of the agent, unless `Prepared.environment` has another. */
  readonly searchPath: string;
}

export interface PreparedProfile {
  /** Absolute, in `home`; written before the agent starts. */
  readonly files: readonly FileEntry[];
  readonly environment: Readonly<Record<string, string>>;
  /** Appended to the profile's own. */
  readonly arguments?: readonly string[];
  /**
   * `_meta` of this run's `session/new`, `session/load` and `session/resume`; overrides the profile's `sessionMeta`.
   */
  readonly sessionMeta?: JsonObject;
  /** Set after the session is open, before its first prompt. */
  readonly session?: SessionSettings;
}

/** Session settings that an agent lets a client choose. If it refuses a choice, the run fails. */
export interface SessionSettings {
  /** `session/set_mode`. */
  readonly mode?: string;
  /** `session/set_model`. */
  readonly model?: string;
  /** `session/set_config_option`, in this order: the option's id with a value's id or a boolean. */
  readonly options?: Readonly<Record<string, string | boolean>>;
}

/** What an agent has reported about one of its tool calls so far. */
export interface ToolCallView {
  readonly id: string;
  readonly title?: string;
  /** The tool's own name, which few agents send. */
  readonly name?: string;
  /** ACP's `ToolKind`. */
  readonly kind?: string;
  readonly input?: unknown;
  /** The first file that the call names. */
  readonly path?: string;
  /** The texts of the call's content so far. */
  readonly text?: string;
  /** The JSON object that this text is, if it is one: some agents show a call's input only so. `inputInWords` reads it. */
  readonly textInput?: unknown;
}

export interface ToolIdentity {
  /** The published tool's name, or the agent's own for a tool of its own. */
  readonly name: string;
  /** The publication it belongs to; absent for the agent's own tools. */
  readonly server?: string;
  /** The call's input, if the agent sends it only as text. */
  readonly input?: unknown;
  /** Whether a call of the agent's own tool only reads. Default: according to ACP's kind. */
  readonly readOnly?: boolean;
}

/** Deviations of an agent from ACP that the driver handles. */
export interface Quirks {
  /**
   * Whether everything that a later run needs is on disk when a turn's response arrives: then it is killed without
   * being asked to exit. If not, its input ends and it has `closeMs` to exit by itself.
   */
  readonly savesBeforeAnswering: boolean;
  /** Whether it accepts a prompt before it has listed its servers' tools: then the driver waits for that. */
  readonly promptsBeforeTools: boolean;
  /** Whether it continues to replay a loaded conversation after it has reported that it is loaded. */
  readonly replaysLate: boolean;
  /**
   * Whether it is known to send nothing of a turn after its answer to the prompt. Of one that isn't, updates are awaited
   * for a moment after each answer, and its next prompt waits until it had time to be late.
   */
  readonly staysInOrder: boolean;
  /** Whether it may ask for permission before it has sent the call's input: then the driver briefly waits for that. */
  readonly asksBeforeInput?: boolean;
  /** Paths into the `_meta` of an update or prompt response that report a failed turn which it ends normally. */
  readonly failureMeta: readonly { readonly path: readonly string[]; readonly failed?: string }[];
}

/** What an agent does between its start and its first conversation, and nothing else. */
export interface AheadFacts {
  /** The number of its processes, at most. */
  readonly processes: number;
  /** Files and folders that it creates, relative to its home. */
  readonly home: readonly string[];
  /** Methods of the notifications that it sends. */
  readonly notifications: readonly string[];
}

/** One agent as data: everything that the driver and the planner must know about it. */
export interface Profile {
  /** The value of `harness` in a request. */
  readonly id: string;
  /** The name in messages: "Gemini CLI". */
  readonly title: string;
  readonly aliases: readonly string[];
  readonly program: ProgramSource;
  /** Arguments of the program. */
  readonly arguments: readonly string[];
  /** Variables of every run. A request can't change them. */
  readonly environment: Readonly<Record<string, string>>;
  /** Absent: the agent has no model, needs no credential and connects to nothing. */
  readonly model?: ModelAccess;
  /** Whether it takes `modelConnection.subscription`, a login for ChatGPT. Default: no. */
  readonly takesSubscription?: boolean;
  /** For an agent with several providers: that of the request. Default: `model`. */
  modelFor?(request: RunRequest): ModelAccess;
  readonly instructions: Instructions;
  /** The reasoning efforts that it can be given. Default: none. */
  readonly reasoning?: ReasoningAccess;
  /**
   * Whether it asks before each use of its own tools, including harmless ones, whatever settings are in its workspace.
   */
  readonly supportsPermissionRequests: boolean;
  /** What else it can't do of a request. Default: nothing. Pure. */
  issues?(request: RunRequest): readonly Issue[];
  /** What it would obey in its workspace: a run whose permissions restrict its own tools doesn't start there. */
  readonly obeys?: readonly ObeyedPath[];
  /**
   * Its own tools by the names that `identify` returns, with what each does, so that patterns of permissions can name
   * them by that.
   */
  readonly ownTools: OwnTools;
  /** Milliseconds that the agent lets one tool call wait while progress is reported every 10 s. */
  readonly maxToolCallMs: number;
  /**
   * How the agent gets the run's tools. `session`: the MCP servers are part of its session. `prepared`: `prepare`
   * passes them, for an agent that accepts none over ACP, such as one with an extension that connects to them. Default:
   * `session`.
   */
  readonly toolDelivery?: "session" | "prepared";
  /** Sent with `initialize`. No file system and no terminal: the agent has its own, inside. */
  readonly clientCapabilities: JsonObject;
  /** `_meta` of `session/new`, `session/load` and `session/resume`. */
  readonly sessionMeta?: JsonObject;
  /**
   * The content of its updates, beyond what `initialize` reports. `usage`: whether the tokens in a turn's response are
   * those of the whole turn; others are ignored.
   */
  readonly reports: { readonly reasoning: boolean; readonly plans: boolean; readonly usage: boolean };
  readonly quirks: Quirks;
  /** Absent: it isn't known, and it can't be started before its run. */
  readonly ahead?: AheadFacts;
  /** The failure that a prompt response reports for a turn which ended normally. Default: according to `quirks`. */
  failure?(response: JsonObject): string | undefined;
  /** The whole turn's tokens, from a prompt response. Default: ACP's `usage`, or Gemini's `_meta.quota`. */
  usage?(response: JsonObject): Usage | undefined;
  prepare(preparation: Preparation): PreparedProfile;
  /** The call that a permission request is about, if the request itself names another. Default: the one it names. */
  permissionCall?(toolCall: JsonObject): JsonObject;
  /** The tool that a call is of. `servers` are the names of the MCP servers that the agent was given. */
  identify(call: ToolCallView, servers: readonly string[]): ToolIdentity;
}
