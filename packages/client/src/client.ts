import type { InteractionAnswer, RunRequest, Schema } from "./api.js";
import { Http, type HttpOptions } from "./http.js";
import { Run, type RunOptions } from "./run.js";
import { Terminal, type TerminalSize } from "./terminal.js";

export interface ClientOptions extends HttpOptions {
  /** The project of every request, where the operator's token may act for several. */
  readonly projectId?: string;
}

/** What every call takes: aborting the signal ends its request. */
export interface CallOptions {
  readonly signal?: AbortSignal;
}

/** Which part of a list is returned: the entries after the id `after`, which ends the page before, and at most `limit`. */
export interface Page extends CallOptions {
  readonly after?: string;
  readonly limit?: number;
}

type ListedRun = Schema<"RunsResponse">["runs"][number];
type Interaction = Schema<"InteractionsResponse">["interactions"][number];
type Delivery = Schema<"StoredDelivery">;

/** Rows of a page of a list that is read whole. Default: 1,000, the most that a server gives. */
type PageSize = Omit<Page, "after">;

const idOfRow = ({ id }: { readonly id: string }) => id;

/** The rows of all pages. A page may be shorter than its limit, so only an empty one is the end. */
async function* each<Row>(
  readPage: (page: Page) => Promise<readonly Row[]>,
  idOf: (row: Row) => string,
): AsyncGenerator<Row, void, void> {
  let page: Page = {};
  for (;;) {
    const rows = await readPage(page);
    yield* rows;
    const last = rows.at(-1);
    if (last === undefined) return;
    page = { after: idOf(last) };
  }
}

const at = (...parts: readonly string[]) => `/${parts.map(encodeURIComponent).join("/")}`;

/**
 * Every route of a server. Each method rejects with an AmbitError that has the failure's code, its gaps and issues with
 * their fixes, and whether a later attempt may succeed.
 */
export class AmbitClient {
  readonly #http: Http;
  readonly #projectId: string | undefined;

  constructor(options: ClientOptions = {}) {
    this.#http = new Http(options);
    this.#projectId = options.projectId;
  }

  /**
   * Begins a run: read its events, await its result, or both.
   *
   * It goes on when the connection is lost, and is followed again; `onDisconnect: "cancel"` in the request ends it instead.
   * With `tools`, `onApproval` or `onInput`, questions are answered while their call waits, and a run that pauses for one
   * is continued in its session.
   */
  run(request: RunRequest, options: RunOptions = {}): Run {
    const projectId = request.projectId ?? this.#projectId;
    const source = { ...request, ...(projectId === undefined ? {} : { projectId }) };
    return new Run(this.#http, { kind: "request", request: source }, options);
  }

  /** Follows a run of the server from a record on; from its beginning by default. */
  attach(runId: string, { after = 0, ...options }: RunOptions & { readonly after?: number } = {}): Run {
    const project = this.#projectId === undefined ? {} : { projectId: this.#projectId };
    return new Run(this.#http, { kind: "attached", runId, after, ...project }, options);
  }

  /** Starts a run that no one waits for: `attach` follows it. A run without a slot waits for one. */
  async start(request: RunRequest, options: CallOptions = {}): Promise<Schema<"AcceptedResponse">> {
    const runId = request.runId ?? crypto.randomUUID();
    return await this.#http.json("/run", {
      method: "POST",
      body: { ...this.#project, ...request, runId },
      headers: { prefer: "respond-async", "idempotency-key": runId },
      ...options,
    });
  }

  /** Whether the request could run: every guarantee, or every gap with its fix. Nothing is started. */
  async plan(request: RunRequest, options: CallOptions = {}): Promise<Schema<"PlanResponse">> {
    return await this.#http.json("/plan", {
      method: "POST",
      body: { ...this.#project, ...request },
      ...options,
    });
  }

  /**
   * A token for a page in a user's browser, for one session. A client with it begins runs that bring only `messages`; its
   * `token` may be a function that gets the newest one from the platform.
   */
  async makeToken(
    request: Schema<"TokenRequest">,
    options: CallOptions = {},
  ): Promise<Schema<"TokenResponse">> {
    return await this.#http.json("/tokens", {
      method: "POST",
      body: { ...this.#project, ...request },
      ...options,
    });
  }

  async runs(page: Page & RunFilter = {}): Promise<Schema<"RunsResponse">> {
    return await this.#list("/runs", page);
  }

  /** All of them, the newest first, page by page as they are read. */
  async *eachRun(filter: RunFilter & PageSize = {}): AsyncGenerator<ListedRun, void, void> {
    const idOf = ({ projectId, runId }: ListedRun) =>
      projectId === undefined ? runId : `${projectId}/${runId}`;
    yield* each(async (page) => (await this.runs({ limit: 1_000, ...filter, ...page })).runs, idOf);
  }

  /** The newest run of a session, also after the session has ended. */
  async sessionRun(sessionId: string, options: CallOptions = {}): Promise<Schema<"RunInfo">> {
    return await this.#http.json(`${at("sessions", sessionId)}/run`, {
      query: this.#project,
      ...options,
    });
  }

  /** @param options `projectId` in place of the client's, for a run of a list that has several projects' */
  async runInfo(
    runId: string,
    {
      projectId = this.#projectId,
      ...options
    }: CallOptions & { readonly projectId?: string | undefined } = {},
  ): Promise<Schema<"RunInfo">> {
    return await this.#http.json(at("runs", runId), { query: { projectId }, ...options });
  }

  /** Deletes an ended run with all of its data. */
  async deleteRun(runId: string, options: CallOptions = {}): Promise<Schema<"EndedResponse">> {
    return await this.#http.json(at("runs", runId), { method: "DELETE", query: this.#project, ...options });
  }

  /** Ends a running or queued run. */
  async cancelRun(runId: string, options: CallOptions = {}): Promise<Schema<"EndedResponse">> {
    return await this.#post(at("runs", runId, "cancel"), options);
  }

  /**
   * Hands the agent of a run a message in the middle of its turn. Rejects where the agent can't take one then: send a run with
   * `whenBusy` instead.
   */
  async sendMessage(
    runId: string,
    content: Schema<"RunMessage">["content"],
    options: CallOptions = {},
  ): Promise<Schema<"ForwardedResponse">> {
    return await this.#http.json(`${at("runs", runId)}/messages`, {
      method: "POST",
      body: { content },
      query: this.#project,
      ...options,
    });
  }

  async interactions(page: Page & InteractionFilter = {}): Promise<Schema<"InteractionsResponse">> {
    return await this.#list("/interactions", page);
  }

  /** All of them, page by page as they are read. */
  async *eachInteraction(filter: InteractionFilter & PageSize = {}): AsyncGenerator<Interaction, void, void> {
    yield* each(
      async (page) => (await this.interactions({ limit: 1_000, ...filter, ...page })).interactions,
      idOfRow,
    );
  }

  /** Answers a question of a run: live, or stored for the session's next turn. */
  async answer(
    runId: string,
    interactionId: string,
    answer: InteractionAnswer,
    options: CallOptions = {},
  ): Promise<Schema<"ForwardedResponse">> {
    return await this.#http.json(at("runs", runId, "interactions", interactionId), {
      method: "POST",
      body: answer,
      query: this.#project,
      ...options,
    });
  }

  /** The request of a run, to begin it again, with `[redacted]` in place of each secret. Rejects with `not_found` where it isn't kept. */
  async runRequest(runId: string, options: CallOptions = {}): Promise<RunRequest> {
    const path = at("runs", runId, "request");
    return (await this.#http.json<{ request: RunRequest }>(path, { query: this.#project, ...options }))
      .request;
  }

  /** @param options `urlTtlMs`: each file gets a `url`, below the server's `publicUrl` or relative to it, which needs no token for so long. */
  async files(
    runId: string,
    { urlTtlMs, ...options }: CallOptions & { readonly urlTtlMs?: number } = {},
  ): Promise<Schema<"OutputFilesResponse">> {
    return await this.#http.json(at("runs", runId, "files"), {
      query: { ...this.#project, urlTtlMs },
      ...options,
    });
  }

  /** One file of a run's outputs. */
  async file(runId: string, path: string, options: CallOptions = {}): Promise<Response> {
    return await this.#download(at("runs", runId, "files", ...path.split("/")), options);
  }

  /** All files of a run's outputs, as a tar archive. */
  async archive(runId: string, options: CallOptions = {}): Promise<Response> {
    return await this.#download(at("runs", runId, "archive"), options);
  }

  /** What the run changed, as a patch. */
  async patch(runId: string, options: CallOptions = {}): Promise<string> {
    return await (await this.#download(at("runs", runId, "patch"), options)).text();
  }

  /** The run's commits, as a git bundle. */
  async bundle(runId: string, options: CallOptions = {}): Promise<Response> {
    return await this.#download(at("runs", runId, "bundle"), options);
  }

  async sessions(page: Omit<Page, "after"> = {}): Promise<Schema<"SessionsResponse">> {
    return await this.#list("/sessions", page);
  }

  /** Closes a session with its sandbox and agent, and the run that uses it. */
  async closeSession(sessionId: string, options: CallOptions = {}): Promise<Schema<"EndedResponse">> {
    return await this.#http.json(at("sessions", sessionId), {
      method: "DELETE",
      query: this.#project,
      ...options,
    });
  }

  /** One folder of an open session's workspace, as it is now. @param path relative to the workspace. Default: the workspace itself */
  async sessionFiles(
    sessionId: string,
    path?: string,
    options: CallOptions = {},
  ): Promise<Schema<"SessionFilesResponse">> {
    return await this.#http.json(at("sessions", sessionId, "files"), {
      query: { ...this.#project, path },
      ...options,
    });
  }

  /** One file of an open session's workspace, as it is now. */
  async sessionFile(sessionId: string, path: string, options: CallOptions = {}): Promise<Response> {
    return await this.#download(at("sessions", sessionId, "files", ...path.split("/")), options);
  }

  /**
   * A terminal in an idle session, where the server allows it: a shell with the session's boundary. The session's runs wait until
   * it has ended. Rejects with `session_in_use` while a run or another terminal has the session.
   */
  async openTerminal(
    sessionId: string,
    { signal, columns = 80, rows = 24 }: CallOptions & Partial<TerminalSize> = {},
  ): Promise<Terminal> {
    const path = at("sessions", sessionId, "terminals");
    return await Terminal.open(this.#http, path, this.#project, { columns, rows }, signal);
  }

  async takeSnapshot(sessionId: string, options: CallOptions = {}): Promise<Schema<"SnapshotInfo">> {
    return await this.#post(at("sessions", sessionId, "snapshot"), options);
  }

  async snapshots(options: CallOptions = {}): Promise<Schema<"SnapshotsResponse">> {
    return await this.#http.json("/snapshots", { query: this.#project, ...options });
  }

  async snapshot(snapshotId: string, options: CallOptions = {}): Promise<Schema<"SnapshotInfo">> {
    return await this.#http.json(at("snapshots", snapshotId), { query: this.#project, ...options });
  }

  async deleteSnapshot(snapshotId: string, options: CallOptions = {}): Promise<Schema<"EndedResponse">> {
    return await this.#http.json(at("snapshots", snapshotId), {
      method: "DELETE",
      query: this.#project,
      ...options,
    });
  }

  /** A snapshot as a file that any server imports. */
  async exportSnapshot(snapshotId: string, options: CallOptions = {}): Promise<Response> {
    return await this.#download(at("snapshots", snapshotId, "archive"), options);
  }

  async importSnapshot(
    archive: Blob | ReadableStream<Uint8Array>,
    options: CallOptions = {},
  ): Promise<Schema<"SnapshotInfo">> {
    return await this.#http.json("/snapshots", {
      method: "POST",
      body: archive,
      query: this.#project,
      headers: { "content-type": "application/octet-stream" },
      ...options,
    });
  }

  async deliveries(page: Page & DeliveryFilter = {}): Promise<Schema<"DeliveriesResponse">> {
    return await this.#list("/deliveries", page);
  }

  /** All of them, the newest first, page by page as they are read. */
  async *eachDelivery(filter: DeliveryFilter & PageSize = {}): AsyncGenerator<Delivery, void, void> {
    yield* each(
      async (page) => (await this.deliveries({ limit: 1_000, ...filter, ...page })).deliveries,
      idOfRow,
    );
  }

  /** Sends a webhook's message again. */
  async redeliver(deliveryId: string, options: CallOptions = {}): Promise<Schema<"StoredDelivery">> {
    return await this.#http.json(at("deliveries", deliveryId, "redeliver"), { method: "POST", ...options });
  }

  /** What the runs used that ended on these days (UTC): of the last 30 by default. */
  async usage(options: CallOptions & UsageFilter = {}): Promise<Schema<"UsageResponse">> {
    return await this.#list("/usage", options);
  }

  /** What each project with a token may use, and uses now. */
  async quotas(
    options: CallOptions & { readonly projectId?: string } = {},
  ): Promise<Schema<"QuotasResponse">> {
    return await this.#list("/quotas", options);
  }

  /** Every actor, with its claims and what was proven on the server's host. */
  async plugins(options: CallOptions = {}): Promise<Schema<"PluginsResponse">> {
    return await this.#http.json("/plugins", options);
  }

  /** The server's host: its agents with their versions, what is required of it, and what was verified. For the operator. */
  async host(options: CallOptions = {}): Promise<Schema<"HostResponse">> {
    return await this.#http.json("/host", options);
  }

  /**
   * A link that signs in to the server's console once, within minutes, as this token's owner. A server without a console
   * has no such route.
   */
  async signInLink({
    role,
    user,
    ...options
  }: CallOptions & {
    readonly role?: "viewer" | "answerer" | "operator" | undefined;
    /** The name of the person, which the server keeps with what is answered. */
    readonly user?: string | undefined;
  } = {}): Promise<string> {
    const body = { ...(role === undefined ? {} : { role }), ...(user === undefined ? {} : { user }) };
    const { path } = await this.#http.json<{ path: string }>("/console/links", {
      method: "POST",
      body,
      ...options,
    });
    return `${this.#http.url}${path}`;
  }

  async health(options: CallOptions = {}): Promise<Schema<"HealthResponse">> {
    return await this.#http.json("/health", options);
  }

  /** Rejects while the server takes no runs. */
  async ready(options: CallOptions = {}): Promise<Schema<"ReadyResponse">> {
    return await this.#http.json("/ready", options);
  }

  get #project(): { readonly projectId?: string } & Readonly<Record<string, string>> {
    return this.#projectId === undefined ? {} : { projectId: this.#projectId };
  }

  async #list<Answer>(path: string, { signal, ...query }: Page & object): Promise<Answer> {
    const named = Object.entries({ ...this.#project, ...query }).filter(([, value]) => value !== undefined);
    return await this.#http.json(path, {
      query: Object.fromEntries(named.map(([name, value]) => [name, String(value)])),
      signal,
    });
  }

  async #post<Answer>(path: string, options: CallOptions): Promise<Answer> {
    return await this.#http.json(path, { method: "POST", query: this.#project, ...options });
  }

  async #download(path: string, options: CallOptions): Promise<Response> {
    return await this.#http.send(path, { accept: "*/*", query: this.#project, ...options });
  }
}

interface RunFilter {
  readonly sessionId?: string;
  readonly state?: "queued" | "running" | "ended";
  readonly outcome?: NonNullable<ListedRun["outcome"]>;
  readonly harness?: string;
  readonly sandbox?: string;
  /** Selects runs with open questions. */
  readonly asking?: true;
}

interface UsageFilter {
  /** Days, such as `2026-11-29`: the first, and the last, which is included. */
  readonly from?: string;
  readonly to?: string;
  /** Default: `day`. */
  readonly by?: Schema<"UsageResponse">["by"];
  readonly projectId?: string;
}

interface InteractionFilter {
  readonly runId?: string;
  readonly sessionId?: string;
  readonly state?: string;
}

interface DeliveryFilter {
  readonly runId?: string;
  readonly state?: string;
}
