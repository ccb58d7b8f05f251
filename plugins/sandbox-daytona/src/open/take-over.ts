import { type Ownership, ownershipOf } from "@ambit/backend-kit";
import type { RemoteSandbox } from "@ambit/bridge";
import { SandboxFailed, type SandboxSpec, type Scope } from "@ambit/core/plugin";
import type { Account } from "../account.js";
import { ServiceFailure } from "../platform/failure.js";
import type { Machine } from "../platform/service.js";
import { type MountedSecrets, removeSecrets } from "../secrets/organisation-secrets.js";
import { openBridge, readHandover } from "./open.js";
import { differences } from "./read-back.js";
import { asMissing, deleteMachine, endOf } from "./remote-machine.js";
import { LimitsNotApplied, remoteMachine, type StartedMachine, sandboxOrder } from "./start-machine.js";

/**
 * Takes over the sandbox of another runner: labels it as this runner's, reads its limits back and tests them from
 * inside. After that, its bridge ignores every other runner.
 *
 * @throws SandboxFailed. If the labels had been changed by then, the sandbox is this runner's, which discards or reaps it.
 */
export async function takeOverSandbox(
  account: Account,
  spec: SandboxSpec,
  handover: string,
  scope: Scope,
): Promise<RemoteSandbox> {
  const { machine: id, bridge: resume, secrets } = readHandover(handover);
  const { fence } = spec;
  if (fence === undefined) throw new Error("A sandbox is taken over under a fence.");
  const owner = await account.reaper.begin(spec.id, fence);
  try {
    const machine = await found(account, id, spec.id, fence);
    const started = await claimed(account, machine, owner, spec, secrets);
    return await openBridge(account, started, spec, scope, { fence, resume });
  } catch (error) {
    account.reaper.end(spec.id);
    throw error;
  }
}

/** Deletes a sandbox that no runner takes over. */
export async function discardSandbox(
  account: Account,
  { id: session, fence = 0, log }: Pick<SandboxSpec, "id" | "fence" | "log">,
  handover: string,
): Promise<void> {
  const { machine: id, secrets } = readHandover(handover);
  const limitMs = account.config.requestTimeoutMs;
  try {
    const machine = await found(account, id, session, fence + 1);
    await deleteMachine(machine, limitMs);
    log.info({ sandbox: machine.name }, "a session's earlier sandbox is deleted");
  } catch (error) {
    if (!(error instanceof ServiceFailure) || error.kind !== "missing") throw error;
  }
  await removeSecrets(await account.service(), secrets.ids, limitMs);
}

/** Checks that it belongs to this session, with a lower fence. @throws SandboxFailed, ServiceFailure */
async function found(account: Account, id: string, session: string, below: number): Promise<Machine> {
  const machine = await (await account.service()).get(id);
  const now = ownershipOf(machine.labels);
  const isSame = now?.deployment === account.config.deployment && now.session === session;
  if (isSame && now.fence !== undefined && now.fence < below) return machine;
  throw new SandboxFailed(`Daytona: the sandbox ${machine.name} has another owner`, { concerns: "session" });
}

async function claimed(
  account: Account,
  machine: Machine,
  owner: Ownership,
  { id: session, boundary, log }: SandboxSpec,
  secrets: MountedSecrets,
): Promise<StartedMachine> {
  const order = sandboxOrder(account.config, owner, { session, boundary }, secrets.mounts);
  // Before it is used: from now on its earlier owner no longer deletes it.
  await machine.setLabels(order.labels);
  const view = await machine.refresh().catch((error: unknown) => {
    throw error instanceof ServiceFailure ? asMissing(error) : error;
  });
  const ended = endOf(view);
  if (ended !== undefined) throw ended;
  const wrong = differences(order, view).map(({ text }) => text);
  if (wrong.length > 0)
    throw new LimitsNotApplied(
      `Daytona: the session's sandbox no longer matches the request: ${wrong.join("; ")}`,
    );
  const platform = remoteMachine(account, machine, owner, secrets, log);
  return { machine, order, view, secrets, platform };
}
