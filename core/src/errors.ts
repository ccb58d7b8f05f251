import { constants } from "node:os";
import type { Failure, FailureCode, Gap, Issue, RunResult, SourceFailureReason } from "./contract/index.js";

const brand = "ambit.error";

/** The HTTP status of a response that failed with this code, the first time and when the response is repeated. */
export const failureStatuses = {
  request_invalid: 400,
  unauthorized: 401,
  budget_exceeded: 402,
  not_found: 404,
  command_executed: 409,
  session_elsewhere: 409,
  interaction_expired: 410,
  boundary_refused: 422,
  idempotency_key_reused: 422,
  source_failed: 422,
  setup_failed: 422,
  at_capacity: 429,
  session_in_use: 429,
  run_cancelled: 499,
  internal: 500,
  plugin_broke_contract: 500,
  plugin_load_failed: 500,
  sandbox_failed: 502,
  harness_failed: 502,
  model_failed: 502,
  outputs_failed: 502,
  runner_lost: 502,
  snapshot_failed: 502,
  store_failed: 503,
  run_timed_out: 504,
} as const satisfies Readonly<Record<FailureCode, number>>;
export type FailureStatus = (typeof failureStatuses)[FailureCode];

/**
 * The base of the error catalogue, which has a class for each person who must act. `message` is safe to show to the caller;
 * `cause` is for the log and never leaves the process.
 */
export abstract class AmbitError extends Error {
  /** Marks errors of the catalogue across copies of this package, since a plugin may use its own copy. */
  get [brand](): true {
    return true;
  }
  abstract readonly code: FailureCode;
  /** The HTTP status, which applies if the response hasn't begun. */
  get status(): FailureStatus {
    return failureStatuses[this.code];
  }
  /** Whether the same request may succeed later without a change. */
  readonly retryable: boolean = false;

  override get name(): string {
    return this.constructor.name;
  }

  /** The part of the result that a program reads. */
  toFailure(): Failure {
    return { code: this.code, retryable: this.retryable };
  }
}

export function isAmbitError(thrown: unknown): thrown is AmbitError {
  return thrown instanceof Error && brand in thrown;
}

/** `local · network.deny: no user namespace here (EPERM): run on docker` */
export function gapLine(gap: Gap): string {
  return lineOf(gap, capabilitiesText([gap]));
}

/** `network.deny (sandboxPermission.network allows nothing), process.contained (every boundary needs it)` */
function capabilitiesText(gaps: readonly Gap[]): string {
  const byRequirer = new Map<string | undefined, string[]>();
  for (const { capability, requiredBy } of gaps)
    byRequirer.set(requiredBy, [...(byRequirer.get(requiredBy) ?? []), capability]);
  return [...byRequirer]
    .map(([requirer, names]) => `${names.join(", ")}${requirer === undefined ? "" : ` (${requirer})`}`)
    .join(", ");
}

function lineOf({ actor, subject, reason, fix }: Gap, capabilities: string): string {
  return `${actor}${subject === undefined ? "" : ` (${subject})`} · ${capabilities}: ${reason}: ${fix}`;
}

/** The gaps as text, a line for each; gaps of one actor with the same reason share a line. */
export function gapLines(gaps: readonly Gap[]): readonly string[] {
  const grouped = new Map<string, Gap[]>();
  for (const gap of gaps) {
    const key = JSON.stringify([gap.actor, gap.subject, gap.reason, gap.fix]);
    grouped.set(key, [...(grouped.get(key) ?? []), gap]);
  }
  return [...grouped.values()].flatMap((group) => {
    const [gap] = group;
    return gap === undefined ? [] : [lineOf(gap, capabilitiesText(group))];
  });
}

export function issueLine(issue: Issue): string {
  return issue.path === "" ? issue.message : `${issue.path}: ${issue.message}`;
}

function sentence(opening: string, lines: readonly string[]): string {
  return lines.length === 0 ? `${opening}.` : `${opening}: ${lines.join("; ")}`;
}

/** The message of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The code of a system error, such as `ENOENT`. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error && "code" in error && typeof error.code === "string")) return undefined;
  // Node.js has no name for an exhausted quota: "Unknown system error -122".
  return "errno" in error && error.errno === -constants.errno.EDQUOT ? "EDQUOT" : error.code;
}

/** The most characters of an issue's path, and of its message: both may quote the request, which may have megabytes. */
const maxIssueCharacters = 2_000;

/** The caller must change the request. */
export class RequestInvalid extends AmbitError {
  readonly code = "request_invalid";
  readonly issues: readonly Issue[];

  constructor(reported: readonly Issue[]) {
    const issues = reported.map((issue) => ({
      ...issue,
      path: cut(issue.path),
      message: cut(issue.message),
    }));
    super(sentence("The request is invalid", issues.map(issueLine)));
    this.issues = issues;
  }

  override toFailure(): Failure {
    return { ...super.toFailure(), issues: [...this.issues] };
  }
}

function cut(text: string): string {
  return text.length <= maxIssueCharacters ? text : `${text.slice(0, maxIssueCharacters)} …`;
}

/** The caller must present the runner's token. */
export class Unauthorized extends AmbitError {
  readonly code = "unauthorized";

  constructor(message = "Unauthorized") {
    super(message);
  }
}

/** The caller named a route, run or interaction that doesn't exist here. */
export class NotFound extends AmbitError {
  readonly code = "not_found";
}

/** Some actor can't guarantee what the boundary requires: the caller or the deployer chooses a fix. */
export class BoundaryRefused extends AmbitError {
  readonly code = "boundary_refused";

  constructor(
    readonly gaps: readonly Gap[],
    /** Other problems of the request, so that the caller can fix all of them together. */
    readonly issues: readonly Issue[] = [],
  ) {
    super(sentence("The boundary can't be guaranteed", gapLines(gaps)));
  }

  override toFailure(): Failure {
    return {
      ...super.toFailure(),
      gaps: [...this.gaps],
      ...(this.issues.length > 0 ? { issues: [...this.issues] } : {}),
    };
  }
}

/** The caller retries later, or the deployer raises the limit. */
export class AtCapacity extends AmbitError {
  readonly code = "at_capacity";
  override readonly retryable = true;
  /** @param retryAfterMs milliseconds until it may succeed. */
  constructor(
    message: string,
    readonly retryAfterMs = 1_000,
  ) {
    super(message);
  }
}

/** The caller waits until the session's other user has ended, or ends it. */
export class SessionInUse extends AmbitError {
  readonly code = "session_in_use";
  override readonly retryable = true;

  constructor(session: string, user = "another run") {
    super(`Session '${session}' is busy with ${user}.`);
  }
}

/** The caller sent a command whose run has already begun. */
export class CommandExecuted extends AmbitError {
  readonly code = "command_executed";

  /**
   * @param command its id, and the field of the request that has it.
   * @param result the result of the command's one run, once that has ended; undefined if it is no longer kept.
   */
  constructor(
    { field, id }: { readonly field: string; readonly id: string },
    readonly result: Promise<RunResult | undefined>,
  ) {
    super(`The command '${id}' was executed before: each ${field} begins one run.`);
  }
}

/** One plugin that couldn't be loaded, and what to do about it. */
export interface LoadFailure {
  /** The plugin's package or name. */
  readonly plugin: string;
  /** The plugin's package or file in the configuration, if its name doesn't show that. */
  readonly package?: string;
  readonly reason: string;
  readonly fix: string;
  readonly cause?: unknown;
}

/** One failure in one line: `ambit-clock (./clock.mjs): its config: …`. */
export function loadFailureLine({ plugin, package: from, reason, fix }: LoadFailure): string {
  return `${plugin}${from === undefined ? "" : ` (${from})`}: ${reason}: ${fix}`;
}

/** The deployer corrects the configuration. All failures of one start are reported together. */
export class PluginLoadFailed extends AmbitError {
  readonly code = "plugin_load_failed";

  constructor(readonly failures: readonly LoadFailure[]) {
    super(sentence("Plugins could not be loaded", failures.map(loadFailureLine)), {
      cause: failures.map((failure) => failure.cause).filter((cause) => cause !== undefined),
    });
  }
}

/** The plugin's author corrects the plugin: it threw where it must not, or opened less than was required. */
export class PluginBrokeContract extends AmbitError {
  readonly code = "plugin_broke_contract";
}

/** The operator checks the sandbox backend. */
export class SandboxFailed extends AmbitError {
  readonly code = "sandbox_failed";
  /** What failed. `host`: the host or platform, which is probed again before its next use · `session`: only this one. */
  readonly concerns: "host" | "session";

  /** @param options `concerns`: default `host`. */
  constructor(message: string, options?: ErrorOptions & { readonly concerns?: "host" | "session" }) {
    super(message, options);
    this.concerns = options?.concerns ?? "host";
  }
}

/** The operator checks the agent's installation. */
export class HarnessFailed extends AmbitError {
  readonly code = "harness_failed";
  override readonly retryable: boolean;

  /** @param options `retryable`: whether the same request may succeed later. Default: false. */
  constructor(message: string, options?: ErrorOptions & { readonly retryable?: boolean }) {
    super(message, options);
    this.retryable = options?.retryable ?? false;
  }
}

/** The operator or the caller checks the model's endpoint, credential or quota. */
export class ModelFailed extends AmbitError {
  readonly code = "model_failed";

  override readonly retryable: boolean;
  /** The status of the provider's response. Absent without a response, or if it isn't known. */
  readonly upstreamStatus?: number;

  constructor(
    message: string,
    options?: ErrorOptions & { readonly retryable?: boolean; readonly upstreamStatus?: number | undefined },
  ) {
    super(message, options);
    this.retryable = options?.retryable ?? false;
    if (options?.upstreamStatus !== undefined) this.upstreamStatus = options.upstreamStatus;
  }

  override toFailure(): Failure {
    const { upstreamStatus } = this;
    return { ...super.toFailure(), upstreamStatus };
  }
}

/** The caller raises the budget, or the operator corrects a price. The result has the output up to then. */
export class BudgetExceeded extends AmbitError {
  readonly code = "budget_exceeded";
}

/** The caller cancelled or disconnected, or the runner is shutting down. */
export class RunCancelled extends AmbitError {
  readonly code = "run_cancelled";
  override readonly retryable: boolean;

  /** @param by who ended it. A run that its caller ended isn't a failure to that caller. */
  constructor(
    message: string,
    readonly by: "caller" | "runner" = "runner",
  ) {
    super(message);
    this.retryable = by === "runner";
  }
}

/** A run that its caller ended isn't a failure to that caller: `ok`, with the stop reason `cancelled`. Pure. */
export function cancelledByCaller(failure: AmbitError | undefined): boolean {
  return failure instanceof RunCancelled && failure.by === "caller";
}

export class RunTimedOut extends AmbitError {
  readonly code = "run_timed_out";
  override readonly retryable: boolean;

  /** `retryable`: default true. */
  constructor(message: string, options?: ErrorOptions & { readonly retryable?: boolean }) {
    super(message, options);
    this.retryable = options?.retryable ?? true;
  }
}

/** The caller sends a new key with a new request. */
export class IdempotencyKeyReused extends AmbitError {
  readonly code = "idempotency_key_reused";

  constructor(key: string) {
    super(`The Idempotency-Key '${key}' belongs to another request: send each with its own key.`);
  }
}

/** The question is over, without an answer. The agent asks again if it still needs one. */
export class InteractionExpired extends AmbitError {
  readonly code = "interaction_expired";

  /** @param why `expired`: it waited too long, or its run ended. `withdrawn`: the agent took it back. Default: `expired`. */
  constructor(id: string, why: "expired" | "withdrawn" = "expired") {
    super(
      why === "withdrawn"
        ? `The agent has withdrawn the interaction '${id}': it needs no answer any more. If the agent still needs one, it asks again.`
        : `The interaction '${id}' has expired: start the session's next turn, and the agent asks again if it still needs an answer.`,
    );
  }
}

/** The caller sends the request to the replica that has the session. */
export class SessionElsewhere extends AmbitError {
  readonly code = "session_elsewhere";

  constructor(
    session: string,
    readonly address: string,
  ) {
    const fix = `send its runs to ${address}, or have the load balancer choose by session`;
    super(`Session '${session}' lives on another replica: ${fix}.`);
  }

  override toFailure(): Failure {
    return { ...super.toFailure(), address: this.address };
  }
}

/** The replica that had the run died, or was cut off for too long. Its events up to then are in the log. */
export class RunnerLost extends AmbitError {
  readonly code = "runner_lost";
  override readonly retryable = true;

  constructor() {
    super("The replica that ran this was lost; its events up to then are in the log.");
  }
}

/** The operator checks the store: it can't be reached, or is full. */
export class StoreFailed extends AmbitError {
  readonly code = "store_failed";
  override readonly retryable: boolean;

  /** @param options `retryable`: default true */
  constructor(message: string, options?: ErrorOptions & { readonly retryable?: boolean }) {
    super(message, options);
    this.retryable = options?.retryable ?? true;
  }
}

/** The run's files couldn't be copied out of its workspace, or stored: the message says what to change. */
export class OutputsFailed extends AmbitError {
  readonly code = "outputs_failed";
  /** Why a commit couldn't be pushed. */
  readonly reason?: SourceFailureReason;

  constructor(message: string, options?: ErrorOptions & { readonly reason?: SourceFailureReason }) {
    super(message, options);
    if (options?.reason !== undefined) this.reason = options.reason;
  }

  override toFailure(): Failure {
    return { ...super.toFailure(), ...(this.reason === undefined ? {} : { reason: this.reason }) };
  }
}

/** The caller corrects a source of the workspace, or the operator raises its limits. */
export class SourceFailed extends AmbitError {
  readonly code = "source_failed";

  constructor(
    message: string,
    readonly reason: SourceFailureReason,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  override toFailure(): Failure {
    return { ...super.toFailure(), reason: this.reason };
  }
}

/** The caller corrects a command of `environment.setup`, or its boundary. */
export class SetupFailed extends AmbitError {
  readonly code = "setup_failed";
}

/** A sandbox's workspace and home couldn't be stored, or put into another sandbox: the message says what to change. */
export class SnapshotFailed extends AmbitError {
  readonly code = "snapshot_failed";
}

/** A bug in Ambit. Only the log has the cause. */
export class InternalError extends AmbitError {
  readonly code = "internal";

  constructor(cause: unknown) {
    super("Internal error in Ambit; its log has the cause.", { cause });
  }
}

/** Converts anything thrown into an error of the catalogue. */
export function toAmbitError(thrown: unknown): AmbitError {
  return isAmbitError(thrown) ? thrown : new InternalError(thrown);
}
