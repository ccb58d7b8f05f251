import { ownershipOf } from "@ambit/backend-kit";
import { type Log, SandboxFailed, unlessAborted } from "@ambit/core/plugin";
import { asSandboxFailed, type FailureKind, ServiceFailure } from "../platform/failure.js";
import { type RemovalTimes, removeLater } from "../platform/remove-later.js";
import { withRetries } from "../platform/retries.js";
import type { Machine, SandboxOrder, Service } from "../platform/service.js";

interface CreateLimits {
  readonly createTimeoutMs: number;
  readonly requestTimeoutMs: number;
  readonly removal?: RemovalTimes;
}

/**
 * Makes a sandbox and waits until it has started. Its name is unique: if a response was lost, the existing sandbox of
 * that name is used, and none is made twice.
 *
 * @throws SandboxFailed; anything made by then is deleted.
 */
export async function createMachine(
  service: Service,
  order: SandboxOrder,
  limits: CreateLimits,
  signal: AbortSignal,
  log: Log,
): Promise<Machine> {
  const end = performance.now() + limits.createTimeoutMs;
  let mayBeMade = false;
  const attempt = async () => {
    signal.throwIfAborted();
    const leftMs = Math.max(1, end - performance.now());
    try {
      return await service.create(order, leftMs);
    } catch (error) {
      mayBeMade ||= !(error instanceof ServiceFailure) || !refusals.has(error.kind);
      if (!(error instanceof ServiceFailure) || error.kind !== "conflict") throw error;
      return await adopt(service, order, leftMs);
    }
  };
  const making = withRetries(attempt, { retries: 5, limitMs: limits.createTimeoutMs, signal });
  try {
    return await unlessAborted(signal, () => making);
  } catch (error) {
    if (!mayBeMade && !signal.aborted) throw asSandboxFailed(error, "creating a sandbox");
    // The request was abandoned here, but may still be running there.
    let isOver = !signal.aborted;
    void making
      .catch(() => undefined)
      .then(() => {
        isOver = true;
      });
    const remove = () => removeNamed(service, order);
    const removal = await remove().catch(() => "failed" as const);
    if (removal !== "deleted") {
      const surelyAt = performance.now() + limits.requestTimeoutMs;
      const isDone = async () => (await remove()) === "deleted" || (isOver && performance.now() >= surelyAt);
      removeLater({
        name: order.name,
        remove: isDone,
        log,
        holdsProcess: removal === "failed",
        times: limits.removal,
      });
    }
    if (signal.aborted) throw signal.reason;
    const failure = asSandboxFailed(error, "creating a sandbox");
    throw removal === "failed"
      ? new SandboxFailed(
          `${failure.message}; anything created as ${order.name} is removed as soon as possible`,
          {
            cause: error,
          },
        )
      : failure;
  }
}

/** After these errors nothing was made. */
const refusals: ReadonlySet<FailureKind> = new Set([
  "unauthorized",
  "forbidden",
  "restricted",
  "quota",
  "invalid",
  "missing",
  "throttled",
]);

async function adopt(service: Service, order: SandboxOrder, leftMs: number): Promise<Machine> {
  const machine = await service.get(order.name);
  if (!isOrdered(order, machine.labels)) {
    throw new SandboxFailed(
      `Daytona: the sandbox ${order.name} doesn't belong to this session: set another namePrefix`,
    );
  }
  await machine.waitUntilStarted(leftMs);
  return machine;
}

function isOrdered(order: SandboxOrder, labels: Readonly<Record<string, string>>): boolean {
  const [asked, found] = [ownershipOf(order.labels), ownershipOf(labels)];
  return (
    asked !== undefined &&
    found?.deployment === asked.deployment &&
    found.replica === asked.replica &&
    found.session === asked.session
  );
}

/**
 * Deletes everything that the order created. Runs once.
 *
 * @throws ServiceFailure when it may still exist.
 */
async function removeNamed(service: Service, order: SandboxOrder): Promise<"deleted" | "absent"> {
  try {
    const machine = await service.get(order.name);
    // A sandbox with another owner stays: it isn't the ordered one.
    if (!isOrdered(order, machine.labels)) return "absent";
    await machine.delete();
    return "deleted";
  } catch (error) {
    if (error instanceof ServiceFailure && error.kind === "missing") return "absent";
    throw error;
  }
}
