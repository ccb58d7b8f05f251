import { SandboxFailed } from "@ambit/core/plugin";

export type FailureKind =
  | "unauthorized"
  | "forbidden"
  | "restricted"
  | "missing"
  | "conflict"
  | "gone"
  | "invalid"
  | "quota"
  | "throttled"
  | "timeout"
  | "unavailable"
  | "unreachable"
  | "never_started"
  | "other";

/** An operation that Daytona, or the connection to it, failed. The message is the platform's, without credentials. */
export class ServiceFailure extends Error {
  override readonly name = "ServiceFailure";
  constructor(
    readonly kind: FailureKind,
    message: string,
    /** HTTP status; undefined without a response. */
    readonly status?: number,
    /** As the platform requested. */
    readonly retryAfterMs?: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The fields of the SDK's errors that are used. */
export interface PlatformErrorFields {
  readonly name: string;
  readonly message: string;
  readonly statusCode?: number;
  readonly headers?: unknown;
}

const maxMessageLength = 300;

/** @param secret never shown, even if the platform repeats it. */
export function serviceFailure(error: PlatformErrorFields, secret: string): ServiceFailure {
  const plain = error.message.replaceAll(secret, "…");
  const message = plain.length > maxMessageLength ? `${plain.slice(0, maxMessageLength)}…` : plain;
  return new ServiceFailure(
    kindOf(error, plain),
    message,
    error.statusCode,
    retryAfterMs(error.headers),
    // Not the SDK's error itself, whose request contains the key.
    { cause: new Error(`${error.name}: ${message}`) },
  );
}

function kindOf({ name, statusCode }: PlatformErrorFields, message: string): FailureKind {
  // Tiers that may not restrict the network answer 400 or 403 with this text (daytona/clients issue 262).
  if (/network access is restricted|cannot be overridden/i.test(message)) return "restricted";
  if (
    (statusCode === 400 || statusCode === 403) &&
    /quota|limit(s)? exceeded|exceeds?\b.*limit/i.test(message)
  )
    return "quota";
  if (/failed to (start|become ready|create and start)/i.test(message)) return "never_started";
  switch (statusCode) {
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 404:
      return "missing";
    case 408:
    case 504:
      return "timeout";
    case 409:
      return "conflict";
    case 410:
      return "gone";
    case 400:
    case 422:
      return "invalid";
    case 429:
      return "throttled";
    case undefined:
      break;
    default:
      return statusCode >= 500 ? "unavailable" : "other";
  }
  if (name === "DaytonaConnectionTimeoutError") return "timeout";
  return name === "DaytonaConnectionError" ? "unreachable" : "other";
}

/**
 * `Retry-After`, and the platform's own header for one kind of request: `Retry-After-sandbox-create`. The longest one
 * counts.
 */
function retryAfterMs(headers: unknown): number | undefined {
  if (typeof headers !== "object" || headers === null) return undefined;
  const seconds = Object.entries(headers)
    .filter(([header]) => /^retry-after(-|$)/i.test(header))
    .map(([, value]) => Number(value))
    .filter((value) => Number.isFinite(value) && value >= 0);
  return seconds.length === 0 ? undefined : Math.max(...seconds) * 1_000;
}

/** Whether the same request may succeed a moment later. */
export function isPassing({ kind }: ServiceFailure): boolean {
  return ["throttled", "timeout", "unavailable", "unreachable"].includes(kind);
}

/** The failure for the operator: what was tried, Daytona's message, and the fix. */
export function asSandboxFailed(error: unknown, tried: string): SandboxFailed {
  if (error instanceof SandboxFailed) return error;
  if (!(error instanceof ServiceFailure))
    return new SandboxFailed(`Daytona: ${tried} failed`, { cause: error });
  const said = error.status === undefined ? error.message : `${error.status}, ${error.message}`;
  return new SandboxFailed(`Daytona: ${tried} failed (${said}): ${fixFor(error)}`, { cause: error });
}

export function fixFor({ kind, retryAfterMs }: ServiceFailure): string {
  switch (kind) {
    case "unauthorized":
      return "the key is wrong or has expired: set a valid one and restart the runner";
    case "forbidden":
      return "give the key the permissions to write and delete sandboxes, secrets and snapshots";
    case "restricted":
      return "this organisation may not restrict a sandbox's network: use one of tier 3 or 4, or another sandbox";
    case "missing":
      return "check sandbox-daytona's snapshot, image and target";
    case "conflict":
      return "something else has this name or is changing this sandbox: try again, or set another namePrefix";
    case "gone":
      return "it ended on the platform: start a new run";
    case "invalid":
      return "check sandbox-daytona's configuration against the platform's message";
    case "quota":
      return "delete sandboxes, or raise the organisation's limits";
    case "throttled":
      return retryAfterMs === undefined
        ? "too many requests: try again later"
        : `too many requests: try again in ${Math.ceil(retryAfterMs / 1_000)} s`;
    case "never_started":
      return "see the sandbox's log in Daytona's dashboard, or raise sandbox-daytona's createTimeoutMs";
    case "timeout":
    case "unavailable":
      return "the platform has a problem: try again later";
    case "unreachable":
      return "check sandbox-daytona's apiUrl and this host's connection to it";
    case "other":
      return "the runner's log has the cause";
  }
}

/** How a deployer fixes a failed canary. */
export function fixOf(error: unknown): string {
  const failure = error instanceof SandboxFailed ? error.cause : error;
  return failure instanceof ServiceFailure
    ? fixFor(failure)
    : "see the sandbox in Daytona's dashboard, or name another sandbox";
}
