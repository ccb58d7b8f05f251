import type { Sandbox as SandboxDto, SandboxListItem, SandboxState } from "@daytona/api-client";
import { ApiError } from "../../http/api-error.js";
import type { ResolvedSnapshot } from "../../options.js";
import type { Network } from "../../runner/messages.js";
import type { NetworkSettings } from "../network/network-settings.js";

export const organizationId = "org-loopback";

/** One sandbox, as the control plane sees it. */
export interface Sandbox {
  readonly id: string;
  readonly name: string;
  readonly index: number;
  readonly snapshot: string | undefined;
  readonly dockerfile: string | undefined;
  readonly image: ResolvedSnapshot;
  /** The snapshot of a sandbox that it was made from, by its id. */
  readonly from: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly target: string;
  /** CPUs, GiB, GiB. */
  readonly cpu: number;
  readonly memory: number;
  readonly disk: number;
  readonly public: boolean;
  readonly createdAt: number;
  labels: Readonly<Record<string, string>>;
  state: SandboxState;
  errorReason: string | undefined;
  network: NetworkSettings;
  applied: Network;
  /** Names of organisation secrets by the variables that hold their placeholders. */
  secrets: ReadonlyMap<string, string>;
  /** Minutes. */
  autoStopInterval: number;
  autoDeleteInterval: number;
  ttlMinutes: number;
  lastActivityAt: number;
  stoppedAt: number | undefined;
  updatedAt: number;
  pid: number | undefined;
  /** As its daemon says; undefined before the first start. */
  daemonVersion: string | undefined;
}

/** Limited by the number of networks. */
const maxSandboxes = 254;

/** The lowest number that isn't in use. */
export function freeIndex(sandboxes: readonly Sandbox[]): number {
  const taken = new Set(sandboxes.map(({ index }) => index));
  for (let index = 1; index <= maxSandboxes; index += 1) if (!taken.has(index)) return index;
  throw new ApiError(403, `Total sandbox limit exceeded. Maximum allowed: ${maxSandboxes}`);
}

const time = (milliseconds: number) => new Date(milliseconds).toISOString();

function common(sandbox: Sandbox, minuteMs: number, toolboxProxyUrl: string) {
  const { ttlMinutes, errorReason, snapshot, daemonVersion } = sandbox;
  return {
    id: sandbox.id,
    organizationId,
    name: sandbox.name,
    ...(snapshot === undefined ? {} : { snapshot }),
    user: sandbox.image.user,
    labels: { ...sandbox.labels },
    public: sandbox.public,
    target: sandbox.target,
    cpu: sandbox.cpu,
    gpu: 0,
    memory: sandbox.memory,
    disk: sandbox.disk,
    state: sandbox.state,
    ...(errorReason === undefined ? {} : { errorReason }),
    backupState: "None",
    autoStopInterval: sandbox.autoStopInterval,
    autoArchiveInterval: 10_080,
    autoDeleteInterval: sandbox.autoDeleteInterval,
    ...(ttlMinutes > 0 ? { autoDestroyAt: time(sandbox.createdAt + ttlMinutes * minuteMs) } : {}),
    createdAt: time(sandbox.createdAt),
    updatedAt: time(sandbox.updatedAt),
    lastActivityAt: time(sandbox.lastActivityAt),
    sandboxClass: "container",
    ...(daemonVersion === undefined ? {} : { daemonVersion }),
    runnerId: "runner-loopback",
    toolboxProxyUrl,
  } as const;
}

export function sandboxDto(sandbox: Sandbox, minuteMs: number, toolboxProxyUrl: string): SandboxDto {
  const { networkBlockAll, networkAllowList, domainAllowList } = sandbox.network;
  return {
    ...common(sandbox, minuteMs, toolboxProxyUrl),
    env: { ...sandbox.env },
    networkBlockAll,
    ...(networkAllowList === undefined ? {} : { networkAllowList }),
    ...(domainAllowList === undefined ? {} : { domainAllowList }),
    volumes: [],
    ...(sandbox.dockerfile === undefined
      ? {}
      : {
          buildInfo: {
            dockerfileContent: sandbox.dockerfile,
            createdAt: new Date(sandbox.createdAt),
            updatedAt: new Date(sandbox.createdAt),
            snapshotRef: `daytona-${sandbox.id}`,
          },
        }),
  };
}

/** A list omits the network's limits: a client that needs them must get the sandbox. */
export function sandboxListItem(
  sandbox: Sandbox,
  minuteMs: number,
  toolboxProxyUrl: string,
): Omit<SandboxListItem, "networkBlockAll"> {
  return common(sandbox, minuteMs, toolboxProxyUrl);
}
