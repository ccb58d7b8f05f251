import { SandboxFailed } from "@ambit/core/plugin";
import { asSandboxFailed, type FailureKind, ServiceFailure } from "../platform/failure.js";
import { withPatience } from "../platform/patience.js";
import { deleteMachine } from "../platform/remote-machine.js";
import type { Machine, SandboxOrder, Service } from "../platform/service.js";
import { ownershipOf } from "./labels.js";

export interface CreateLimits {
  readonly createTimeoutMs: number;
  readonly requestTimeoutMs: number;
}

/**
 * Makes a sandbox and waits until it has started. Its name is its own: an answer that was lost is made up for by
 * taking over what was made, and nothing is made twice.
 *
 * @throws SandboxFailed; what was made by then is deleted.
 */
export async function createMachine(
  service: Service,
  order: SandboxOrder,
  limits: CreateLimits,
  signal: AbortSignal,
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
  const making = withPatience(attempt, { retries: 5, limitMs: limits.createTimeoutMs, signal });
  try {
    return await unlessAborted(making, signal);
  } catch (error) {
    if (!mayBeMade && !signal.aborted) throw asSandboxFailed(error, "creating a sandbox");
    let complaint = await removeNamed(service, order, limits.requestTimeoutMs);
    if (signal.aborted) {
      // Without its sandbox the call ends soon; what it made after all is removed then.
      await making.catch(() => undefined);
      complaint = await removeNamed(service, order, limits.requestTimeoutMs);
    }
    if (complaint === undefined && signal.aborted) throw signal.reason;
    const failure = asSandboxFailed(error, "creating a sandbox");
    throw complaint === undefined
      ? failure
      : new SandboxFailed(`${failure.message}; ${complaint}`, { cause: error });
  }
}

/** After these nothing was made. */
const refusals: ReadonlySet<FailureKind> = new Set([
  "unauthorized",
  "forbidden",
  "restricted",
  "quota",
  "invalid",
  "missing",
  "throttled",
]);

function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

async function adopt(service: Service, order: SandboxOrder, leftMs: number): Promise<Machine> {
  const machine = await service.get(order.name);
  if (!isOrdered(order, machine.labels)) {
    throw new SandboxFailed(
      `Daytona: there is a sandbox ${order.name} that isn't of this session: set another namePrefix`,
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

/** Deletes what the order may have made. Resolves with a complaint when something may be left. */
async function removeNamed(
  service: Service,
  order: SandboxOrder,
  limitMs: number,
): Promise<string | undefined> {
  try {
    const machine = await withPatience(() => service.get(order.name), { retries: 2, limitMs });
    if (isOrdered(order, machine.labels)) await deleteMachine(machine, limitMs);
    return undefined;
  } catch (error) {
    if (error instanceof ServiceFailure && error.kind === "missing") return undefined;
    return `what was made of ${order.name} is left to the reaper`;
  }
}
