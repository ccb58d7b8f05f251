import { labelsOf, type Ownership } from "@ambit/backend-kit";
import { type Boundary, type HiddenCredential, type Log, SandboxFailed } from "@ambit/core/plugin";
import type { Account } from "../account.js";
import type { DaytonaConfig } from "../config.js";
import { isOwnedBy, machineName } from "../leftovers.js";
import { networkSettings, type ResourceSettings, resourceSettings } from "../limits.js";
import { asSandboxFailed, ServiceFailure } from "../platform/failure.js";
import type { Machine, MachineView, SandboxOrder } from "../platform/service.js";
import { type MountedSecrets, removeSecrets, storeSecrets } from "../secrets/organisation-secrets.js";
import { createMachine } from "./create.js";
import { differences } from "./read-back.js";
import { RemoteMachine } from "./remote-machine.js";

interface MachineRequest {
  readonly session: string;
  readonly boundary: Boundary;
  /** Variables of every process that the platform itself starts. Default: none. */
  readonly env?: Readonly<Record<string, string>>;
  /** Instead of the configured one. */
  readonly source?: SandboxOrder["source"] | undefined;
  /** Default: none. */
  readonly secrets?: readonly HiddenCredential[];
  /** The owner's fence, if another runner may take it over. */
  readonly fence?: number | undefined;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export interface StartedMachine {
  readonly machine: Machine;
  readonly order: SandboxOrder;
  readonly view: MachineView;
  readonly secrets: MountedSecrets;
  /** Its `destroy` removes the secrets too. */
  readonly platform: RemoteMachine;
}

/**
 * A sandbox with every requested limit, according to the platform.
 *
 * @throws SandboxFailed; nothing is left then, or the message names what is left.
 */
export async function startMachine(account: Account, request: MachineRequest): Promise<StartedMachine> {
  const { config } = account;
  const { session, log, signal } = request;
  const owner = await account.reaper.begin(session, request.fence);
  let mounted: MountedSecrets | undefined;
  let platform: RemoteMachine | undefined;
  try {
    const service = await account.service();
    const vault = { namePrefix: config.namePrefix, limitMs: config.requestTimeoutMs };
    mounted = await storeSecrets(service, request.secrets ?? [], owner, vault);
    const order = sandboxOrder(config, owner, request, mounted.mounts);
    const machine = await createMachine(service, order, config, signal, log);
    platform = remoteMachine(account, machine, owner, mounted, log);
    const view = await machine.refresh();
    const wrong = differences(order, view).map(({ text }) => text);
    if (wrong.length > 0) {
      throw new LimitsNotApplied(`Daytona made a sandbox that differs from the request: ${wrong.join("; ")}`);
    }
    return { machine, order, view, secrets: mounted, platform };
  } catch (error) {
    account.reaper.end(session);
    await remove(account, platform, mounted).catch((cause: unknown) =>
      log.warn({ sandbox: session, error: cause }, "the reaper removes what was created for a sandbox"),
    );
    if (signal.aborted) throw signal.reason;
    throw asSandboxFailed(error, "opening a sandbox");
  }
}

async function remove(
  account: Account,
  platform: RemoteMachine | undefined,
  mounted: MountedSecrets | undefined,
): Promise<void> {
  if (platform === undefined) {
    const { requestTimeoutMs } = account.config;
    if (mounted !== undefined) await removeSecrets(await account.service(), mounted.ids, requestTimeoutMs);
  } else await platform.destroy();
}

/** The canary's findings no longer hold. */
export class LimitsNotApplied extends SandboxFailed {}

export function sandboxOrder(
  config: DaytonaConfig,
  owner: Ownership,
  { session, boundary, source, env = {} }: Pick<MachineRequest, "session" | "boundary" | "source" | "env">,
  secrets: Readonly<Record<string, string>>,
): SandboxOrder {
  const resources: ResourceSettings = config.image === undefined ? {} : resourceSettings(boundary.resources);
  return {
    name: machineName(config, session),
    source: source ?? sourceIn(config),
    resources,
    network: networkSettings(boundary.network),
    labels: labelsOf(owner),
    env,
    secrets,
    autoStopMinutes: config.autoStopMinutes,
    ttlMinutes: config.ttlMinutes,
  };
}

function sourceIn({ image, snapshot }: DaytonaConfig): SandboxOrder["source"] {
  if (image !== undefined) return { image };
  return snapshot === undefined ? {} : { snapshot };
}

export function remoteMachine(
  account: Account,
  machine: Machine,
  owner: Ownership,
  { ids }: Pick<MountedSecrets, "ids">,
  log: Log,
): RemoteMachine {
  return new RemoteMachine({
    machine,
    apiKey: account.key(),
    requestTimeoutMs: account.config.requestTimeoutMs,
    log,
    ...(owner.fence === undefined ? {} : { isOwn: () => isOwnedBy(account, machine.id, owner) }),
    onDestroyed: async (isLeft) => {
      account.reaper.end(owner.session);
      // Of a sandbox that another runner has taken over, they are that runner's.
      if (!isLeft) await removeSecrets(await account.service(), ids, account.config.requestTimeoutMs);
    },
  });
}

/** Whether a failed opening contradicts the canary's findings, so that it has to run again. */
export function isContradiction(error: unknown): boolean {
  return error instanceof LimitsNotApplied || isRestriction(error);
}

/** Whether the organisation may not restrict a sandbox's network. */
export function isRestriction(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof ServiceFailure && cause.kind === "restricted";
}
