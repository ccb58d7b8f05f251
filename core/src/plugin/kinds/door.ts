import { z } from "zod";
import { failedResultSchema } from "../../contract/index.js";
import { failureStatuses } from "../../errors.js";

/**
 * Lets clients of another protocol use Ambit: it translates their requests into calls of Ambit's own HTTP API, and what a
 * run's log says into what they read. It calls the API as its caller and in no other way, so the plan, the ceiling, quotas,
 * tenants and tokens hold without its doing. It doesn't act in runs, so it claims nothing and isn't planned.
 */
export interface Door {
  /** Letters, digits and hyphens: `ai-sdk`. It begins the path of each of its routes, and names its command. */
  readonly name: string;
  /** Its routes on the server, behind the same checks as every other: caller, tenant, size. Default: none. */
  readonly routes?: readonly DoorRoute[];
  /**
   * Serves one client on standard input and output, for `ambit door <name>`, as the operator. Settles when the client has
   * left, or `signal` aborts. Default: it has no such client.
   */
  stdio?(call: StdioCall): Promise<void>;
}

export interface DoorRoute {
  readonly method: "GET" | "POST" | "DELETE";
  /** `/ai-sdk`, or below it: `/ai-sdk/chat/{chatId}/stream`. */
  readonly path: string;
  /** What it does, in the server's OpenAPI document. */
  readonly summary: string;
  /**
   * A body that is a stream is sent as fast as the client reads it, and cancelled when the client leaves. One that errors ends
   * the connection without an end of the response, so that the client can't take it for complete. An error of Ambit's is
   * answered as on every route, and one that `@ambit/client` throws for a refusal of the API, or for a run that failed, as the API
   * answered it.
   */
  handle(call: DoorCall): Promise<Response>;
}

/**
 * What `@ambit/client` throws for a refusal of the API, or for a run that failed, whichever copy of it a door has: as the response
 * that says so.
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
  /** Method, URL and headers, without those that carry the caller's token, and without the body. Its signal aborts when the client leaves. */
  readonly request: Request;
  /** A parameter of the path. */
  path(name: string): string;
  /** The body. @throws RequestInvalid, HttpRefusal for one that isn't JSON, or is larger than a request for a run may be */
  json(): Promise<unknown>;
  /** Ambit's HTTP API as this caller, for `new AmbitClient({ fetch })` of `@ambit/client`. Any host name means the server itself. */
  readonly fetch: typeof fetch;
  /**
   * `page`: the caller has a token of one session, whose runs have the token's request; it brings only `sessionId`, `messages`
   * and `runId`. `platform`: the operator or a tenant, who may bring a whole request.
   */
  readonly caller: "platform" | "page";
  /**
   * Names the caller: the operator, a tenant by its token, or a session's pages with the same rights, however often their token is
   * renewed. A door that keeps a client's state between requests gives it to no caller with another id.
   */
  readonly callerId: string;
}

/** One client on standard input and output. */
export interface StdioCall {
  readonly input: ReadableStream<Uint8Array>;
  readonly output: WritableStream<Uint8Array>;
  /** What follows the door's name on the command line. */
  readonly arguments: readonly string[];
  /** Ambit's HTTP API, as the operator. No port is opened for it. */
  readonly fetch: typeof fetch;
  /** What the user who started the command brings. No caller over HTTP can bring it. */
  readonly user: StdioUser;
  /** Aborts when this process must end. */
  readonly signal: AbortSignal;
}

/** The user of a command on their own machine. */
export interface StdioUser {
  /**
   * A folder that can be a workspace itself, as with `ambit run --in-place`.
   * @throws for one that can't; the message says why, and what to do
   */
  openFolder(path: string): Promise<UserFolder>;
  /** How the agent reaches its model by the keys in the user's environment. */
  modelConnection(harness: string | undefined, model: string | undefined): UserModelConnection;
}

/** A folder of the user's that can be the workspace of sessions. */
export interface UserFolder {
  /** Without links. */
  readonly path: string;
  /** From now on, it is the workspace of this session's runs. */
  giveTo(sessionId: string): void;
  /**
   * Called before each run, which must have what it returns in `sandboxPermission.filesystem`. Waits for the end of another
   * run in this folder, then keeps the folder as it is, so that `ambit undo` goes back.
   * @throws for a folder that can't be kept; the signal's reason
   */
  beginRun(signal: AbortSignal): Promise<UserFolderRun>;
}

export interface UserFolderRun {
  /** Paths of the folder that the agent must not write: git runs on the host what they configure. */
  readonly readable: readonly string[];
  /** Paths that it must not reach. */
  readonly denied: readonly string[];
  /** Called once the run has its result, or didn't begin. */
  end(): Promise<UserFolderEnd>;
}

export interface UserFolderEnd {
  /** What the run made that git would have run, as it is named now. */
  readonly disarmed: readonly string[];
  /** The command that goes back. Undefined: the run changed nothing. */
  readonly undo: string | undefined;
}

export interface UserModelConnection {
  /** A request's `modelConnection`. Undefined: there is no key, or none is needed. */
  readonly connection: object | undefined;
  /** The variables of which one has the key. */
  readonly variables: readonly string[];
}
