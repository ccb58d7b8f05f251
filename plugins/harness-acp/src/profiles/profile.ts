import type {
  Command,
  FileEntry,
  JsonObject,
  ModelProtocol,
  OwnTools,
  PublishedServer,
  RequiredPath,
  RunRequest,
  Usage,
} from "@ambit/core/plugin";

/** Where an agent's program comes from. It is looked up on disk, never executed to see whether it is there. */
export interface ProgramSource {
  /** npm package, as in the fix `npm install <package>`. */
  readonly package: string;
  /** Which of the package's `bin` entries. */
  readonly bin: string;
  /**
   * How it gets into a sandbox with an image of its own: `installed` there, on its `PATH` under the name `bin`, or
   * `copied` from the runner with the packages it needs (megabytes at most).
   */
  readonly inImage: "installed" | "copied";
  /** The entry file, where this plugin brings the program along. Default: looked up in `node_modules`. */
  readonly entry?: string;
  /** A further npm package that it needs and doesn't depend on: the agent behind an adapter. */
  readonly companion?: { readonly package: string; readonly bin: string };
  /** Where the program is a binary in a package for each platform: the first of these that is installed. */
  readonly native?: {
    packages(platform: NodeJS.Platform, architecture: string): readonly string[];
    /** The binary, in its package. */
    readonly file: string;
  };
  /** Further files and folders of the runner that it needs: shown in a sandbox here, at their own paths. */
  readonly files?: readonly RequiredPath[];
}

/** How an agent reaches its model. */
export interface ModelAccess {
  /** Values of `modelConnection.provider` that it understands, also as a prefix of `model`: `google/…`. */
  readonly providers: readonly string[];
  /** Variables that may hold its credential; the first is the one that messages name. */
  readonly credentials: readonly [string, ...string[]];
  /** Used when the request names no model. */
  readonly defaultModel: string;
  /** Whether it takes a model that it doesn't list. Default: no, at the provider's own endpoint. */
  isKnown?(model: string): boolean;
  readonly endpoint: {
    /** Where the model lives unless the request says otherwise. */
    readonly url: string;
    /** Variables of `modelConnection.environment` that lead the agent elsewhere; the first is set for a model route. */
    readonly variables: readonly string[];
  };
  /** How a model gateway carries its requests. Absent: it can't be led to another base URL with another key. */
  readonly route?: RouteAccess;
}

export interface RouteAccess {
  /** The API that the agent speaks. */
  readonly protocol: ModelProtocol;
  /** What of the API's path its base URL holds. Default: `/v1` for `openai`, nothing for the others. */
  readonly basePath?: "" | "/v1";
  /** The variable that holds the route's key in place of a credential. Default: the first of `credentials`. */
  readonly keyVariable?: string;
  /** Patterns (`*` for any text) of models that it asks for by itself, such as one that finds titles. Default: none. */
  readonly auxiliaryModels?: readonly string[];
}

/** Where the agent sends what it asks its model. */
export interface ModelEndpoint {
  /** Absent: where the agent does by default. */
  readonly baseUrl?: string;
  /** Set where a model gateway carries it: stands for the API key. The real credential isn't inside. */
  readonly key?: string;
}

/** How the agent takes instructions besides the prompt. */
export interface Instructions {
  /** The workspace file that it reads as standing instructions: `AGENTS.md`. */
  readonly agentsFile: string;
  /** Where it looks for skills, in the workspace. Default: `.agents/skills`. */
  readonly skillsFolder?: string;
  /** Whether `prepare` puts `systemPrompt`, in place of the agent's own, and `appendSystemPrompt` into effect. */
  readonly systemPrompt: boolean;
  readonly appendSystemPrompt: boolean;
  /** Values of `harnessMode` that it knows. */
  readonly modes: readonly string[];
}

/** A published server as the agent reaches it from inside. */
export type ToolEndpoint = Pick<PublishedServer, "name" | "url" | "headers">;

/** What a start knows when the agent's files and variables are made. */
export interface Preparation {
  readonly request: RunRequest;
  /** Absolute, as seen inside. */
  readonly home: string;
  /** The request's model without its provider prefix, or the default; empty for an agent without a model. */
  readonly model: string;
  /** The model gateway inside the sandbox, or the request's own endpoint. */
  readonly endpoint: ModelEndpoint;
  /** What stands for the model's credential inside: a gateway's token, a placeholder, or itself. */
  readonly credential?: string;
  /** How the program's companion is started; undefined where there is none. */
  readonly companion?: Command["argv"];
  /** The MCP servers over HTTP that publish the run's tools, with the headers that they ask for. */
  readonly servers: readonly ToolEndpoint[];
  /** `PATH` of the agent, unless `Prepared.environment` has another. */
  readonly searchPath: string;
}

export interface Prepared {
  /** Absolute, in `home`; written before the agent starts. */
  readonly files: readonly FileEntry[];
  readonly environment: Readonly<Record<string, string>>;
  /** Behind the profile's own. */
  readonly arguments?: readonly string[];
  /** `_meta` of this run's `session/new`, `session/load` and `session/resume`: over the profile's `sessionMeta`. */
  readonly sessionMeta?: JsonObject;
  /** Set when the session is open, before its first prompt. */
  readonly session?: SessionSettings;
}

/** What an agent lets a client choose for a session; one that refuses a choice fails the run. */
export interface SessionSettings {
  /** `session/set_mode`. */
  readonly mode?: string;
  /** `session/set_model`. */
  readonly model?: string;
  /** `session/set_config_option`, in this order: by the option's id, a value's id or a switch. */
  readonly options?: Readonly<Record<string, string | boolean>>;
}

/** What an agent says of one of its tool calls, as far as it has. */
export interface ToolCallView {
  readonly id: string;
  readonly title?: string;
  /** The tool's own name, which few agents give. */
  readonly name?: string;
  /** ACP's `ToolKind`. */
  readonly kind?: string;
  readonly input?: unknown;
  /** The first file that the call names. */
  readonly path?: string;
  /** The texts of the call's content so far. */
  readonly text?: string;
}

export interface ToolIdentity {
  /** The published tool's name, or the agent's own for a tool of its own. */
  readonly name: string;
  /** The publication it belongs to; absent for the agent's own tools. */
  readonly server?: string;
  /** The call's input, where the agent tells it only in words. */
  readonly input?: unknown;
  /** Whether a call of the agent's own tool only reads. Default: as ACP's kind says. */
  readonly readOnly?: boolean;
}

/** Deviations of an agent that the driver makes up for. */
export interface Quirks {
  /**
   * Whether all that a later run needs is on disk when a turn's answer arrives: then it is killed without being
   * asked to leave. If not, its input ends and it has `closeMs` to go by itself.
   */
  readonly savesBeforeAnswering: boolean;
  /** Whether it takes a prompt before it has asked its servers for their tools: then the driver waits for that. */
  readonly promptsBeforeTools: boolean;
  /** Whether it goes on replaying a loaded conversation after it has answered that it is loaded. */
  readonly replaysLate: boolean;
  /** Whether it may ask for permission before it has told the call's input: then the driver waits for that a moment. */
  readonly asksBeforeInput?: boolean;
  /** Paths into the `_meta` of an update or prompt response where it reports a failed turn that it ends well. */
  readonly failureMeta: readonly { readonly path: readonly string[]; readonly failed?: string }[];
}

/** One agent, as data: everything that the driver and the planner must know of it and of no other. */
export interface Profile {
  /** As `harness` in a request. */
  readonly id: string;
  /** As in messages: "Gemini CLI". */
  readonly title: string;
  readonly aliases: readonly string[];
  readonly program: ProgramSource;
  /** Behind the program's entry. */
  readonly arguments: readonly string[];
  /** Variables that hold for every run. A request can't change them. */
  readonly environment: Readonly<Record<string, string>>;
  /** Absent: the agent has no model, needs no credential and goes nowhere. */
  readonly model?: ModelAccess;
  /** For an agent with several providers: that of the request. Default: `model`. */
  modelFor?(request: RunRequest): ModelAccess;
  readonly instructions: Instructions;
  /** Whether it asks before each use of a tool of its own, harmless ones too, whatever settings lie in its workspace. */
  readonly supportsPermissionRequests: boolean;
  /** Its own tools by the names that `identify` gives, with what each does: patterns of permissions name them by that. */
  readonly ownTools: OwnTools;
  /** Milliseconds the agent lets one tool call wait while progress is reported every 10 s. */
  readonly maxToolCallMs: number;
  /**
   * How the agent is given the run's tools: `session` hands it the MCP servers with its session; `prepared` leaves it
   * to `prepare`, for an agent that takes none over ACP (an extension that connects to them, say). Default: `session`.
   */
  readonly toolDelivery?: "session" | "prepared";
  /** Sent with `initialize`. No file system and no terminal: the agent has its own, inside. */
  readonly clientCapabilities: JsonObject;
  /** `_meta` of `session/new`, `session/load` and `session/resume`. */
  readonly sessionMeta?: JsonObject;
  /**
   * What its updates carry, beyond what `initialize` tells. `usage`: whether the tokens that it tells with a turn's
   * answer are those of the whole turn; others are left out.
   */
  readonly reports: { readonly reasoning: boolean; readonly plans: boolean; readonly usage: boolean };
  readonly quirks: Quirks;
  /** What the answer to a prompt says of a failed turn that it ends well. Default: what `quirks` says. */
  failure?(response: JsonObject): string | undefined;
  /** The whole turn's tokens, from the answer to a prompt. Default: ACP's `usage`, or Gemini's `_meta.quota`. */
  usage?(response: JsonObject): Usage | undefined;
  prepare(preparation: Preparation): Prepared;
  /** The call that a permission request is about, where the request itself says another. Default: as it says. */
  permissionCall?(toolCall: JsonObject): JsonObject;
  /** Which tool a call is of. `servers` are the names of the MCP servers that the agent was given. */
  identify(call: ToolCallView, servers: readonly string[]): ToolIdentity;
}
