import { z } from "zod";
import { failedResultSchema } from "../../contract/index.js";
import { failureStatuses } from "../../errors.js";

/**
 * Lets clients of another protocol use Ambit: a door translates their requests into calls of Ambit's own HTTP API, and the
 * events of runs into their protocol. It only calls the API as its caller, so the plan, the ceiling, quotas, tenants and
 * tokens apply without any code in the door. It doesn't act in runs, so it claims nothing and isn't planned.
 */
export interface Door {
  /** Letters, digits and hyphens: `ai-sdk`. The path of each of its routes begins with it, and it names the command. */
  readonly name: string;
  /** Routes on the server, behind the same checks as every other route: caller, tenant, size. Default: none. */
  readonly routes?: readonly DoorRoute[];
  /**
   * Serves one client on standard input and output, for `ambit door <name>`, as the operator. Settles when the client has
   * left, or `signal` aborts. Default: the door has no such clients.
   */
  stdio?(call: StdioCall): Promise<void>;
}

export interface DoorRoute {
  readonly method: "GET" | "POST" | "DELETE";
  /** The door's name, or a path below it: `/ai-sdk`, `/ai-sdk/chat/{chatId}/stream`. */
  readonly path: string;
  /** The route's summary in the server's OpenAPI document. */
  readonly summary: string;
  /**
   * Answers a request. A streamed body is sent as fast as the client reads it, and cancelled when the client leaves. If the
   * stream fails, the connection is cut, so that the client can't take the response for complete. Ambit's errors get the
   * response that they get on every route. An error that `@ambit/client` throws for a refusal of the API, or for a run that
   * failed, gets the API's own response.
   */
  handle(call: DoorCall): Promise<Response>;
}

/**
 * Parses the error that `@ambit/client` throws for a refusal of the API, or for a run that failed, into its response. It looks
 * at the error's shape, since a door may have its own copy of that package.
 */
export const apiRefusalSchema = z
  .object({
    status: z.int().min(400).max(599).optional(),
    result: failedResultSchema,
    retryAfterMs: z.number().optional(),
  })
  .transform(({ status, result, retryAfterMs = 0 }) => {
    const headers: Readonly<Record<string, string>> =
      retryAfterMs === 0 ? {} : { "retry-after": String(Math.ceil(retryAfterMs / 1_000)) };
    // A run that failed within its stream has the status of its code.
    return { status: status ?? failureStatuses[result.failure.code], result, headers };
  });

/** One request to a door. */
export interface DoorCall {
  /** The request without its body and the headers with the caller's token. Its signal aborts when the client leaves. */
  readonly request: Request;
  /** A parameter of the path. */
  path(name: string): string;
  /** Reads the body. @throws RequestInvalid, HttpRefusal if it isn't JSON, or is larger than a run's request may be */
  json(): Promise<unknown>;
  /** Calls Ambit's HTTP API as this caller; pass it to `new AmbitClient({ fetch })`. Any host name means the server itself. */
  readonly fetch: typeof fetch;
  /**
   * `page`: the caller has a token of one session, whose runs have the token's request; it brings only `sessionId`, `messages`
   * and `runId`. `platform`: the operator or a tenant, who may bring a whole request.
   */
  readonly caller: "platform" | "page";
  /**
   * Identifies the caller: the operator, a tenant by its token, or a session's pages with the same rights, however often
   * their token is renewed. A door must not give a client's state to a caller with another id.
   */
  readonly callerId: string;
}

/** One client on standard input and output. */
export interface StdioCall {
  readonly input: ReadableStream<Uint8Array>;
  readonly output: WritableStream<Uint8Array>;
  /** The arguments that follow the door's name on the command line. */
  readonly arguments: readonly string[];
  /** Calls Ambit's HTTP API as the operator, without opening a port. */
  readonly fetch: typeof fetch;
  /** The user who started the command. Callers over HTTP have no access to it. */
  readonly user: StdioUser;
  /** Aborts when this process must end. */
  readonly signal: AbortSignal;
}

/** The user of a command on their own machine. */
export interface StdioUser {
  /**
   * Opens a folder to be used as a workspace itself, as with `ambit run --in-place`.
   * @throws for a folder that can't be one; the message says why, and what to do
   */
  openFolder(path: string): Promise<UserFolder>;
  /** How the agent reaches its model with the keys in the user's environment. */
  modelConnection(harness: string | undefined, model: string | undefined): UserModelConnection;
}

/** A folder of the user's that can be the workspace of sessions. */
export interface UserFolder {
  /** The real path, with symbolic links resolved. */
  readonly path: string;
  /** Makes the folder the workspace of this session's runs from now on. */
  giveTo(sessionId: string): void;
  /**
   * Called before each run, whose `sandboxPermission.filesystem` must contain the returned paths. Waits for the end of
   * another run in this folder, then records its state for `ambit undo`.
   * @throws for a folder whose state can't be recorded; the signal's reason
   */
  beginRun(signal: AbortSignal): Promise<UserFolderRun>;
}

export interface UserFolderRun {
  /** Paths in the folder that the agent must not write, since git on the host would run what they configure. */
  readonly readable: readonly string[];
  /** Paths in the folder that the agent must neither read nor write. */
  readonly denied: readonly string[];
  /** Called when the run has its result, or didn't begin. */
  end(): Promise<UserFolderEnd>;
}

export interface UserFolderEnd {
  /** The present names of files that git would have run, which the run created. */
  readonly disarmed: readonly string[];
  /** The command that undoes the run's changes. Undefined: it changed nothing. */
  readonly undo: string | undefined;
}

export interface UserModelConnection {
  /** A request's `modelConnection`. Undefined: there is no key, or none is needed. */
  readonly connection: object | undefined;
  /** The variables in which the key may be. */
  readonly variables: readonly string[];
}
