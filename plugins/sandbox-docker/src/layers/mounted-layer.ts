import { join } from "node:path/posix";
import { labelsOf, type Ownership } from "@ambit/backend-kit";
import type { SessionFolders } from "@ambit/bridge";
import { type LayerUse, SandboxFailed } from "@ambit/core/plugin";
import type { MountSettings } from "dockerode";
import type { LayerParts, LayerVolumes, Volume } from "./layer-volumes.js";

/** What a container has mounted of a layer. */
export interface LayerMounts {
  readonly mounts: readonly MountSettings[];
  /** Folders in memory, as in `HostConfig.Tmpfs`. */
  readonly tmpfs: Readonly<Record<string, string>>;
}

/** What a container has of a layer. */
export interface MountedLayer extends LayerMounts {
  /** Called when the container holds the volumes. @throws SandboxFailed where the layer was removed before */
  confirm(signal: AbortSignal): Promise<void>;
  /** Called when the container is gone, unless its files become the layer. */
  ended(): Promise<void>;
  /** Called instead of `ended`. Present for a layer that is made. @throws SandboxFailed */
  publish?(): Promise<void>;
}

/** Inside. */
type Folders = Pick<SessionFolders, "workspace" | "home">;

/** @throws SandboxFailed */
export function mountLayer(
  { use, name }: LayerUse,
  folders: Folders,
  volumes: LayerVolumes,
  owner: Ownership,
  signal: AbortSignal,
): Promise<MountedLayer> {
  return use === "make"
    ? layerToMake(name, folders, volumes)
    : layerToBeginWith(name, folders, volumes, owner, signal);
}

async function layerToMake(name: string, folders: Folders, volumes: LayerVolumes): Promise<MountedLayer> {
  const parts = await volumes.newParts();
  return {
    mounts: [mountOf(parts.workspace, folders.workspace), mountOf(parts.home, folders.home)],
    tmpfs: {},
    confirm: async () => undefined,
    ended: () => volumes.removeParts(parts),
    publish: async () => {
      try {
        await volumes.publish(name, parts);
      } catch (error) {
        await volumes.removeParts(parts).catch(() => undefined);
        throw error;
      }
    },
  };
}

/**
 * The kernel's overlay of two empty folders over each of the layer's: what the sandbox changes is in the upper one. The layer's
 * own volumes are mounted too, read-only, so that the engine removes none that is in use.
 */
async function layerToBeginWith(
  name: string,
  folders: Folders,
  volumes: LayerVolumes,
  owner: Ownership,
  signal: AbortSignal,
): Promise<MountedLayer> {
  const parts = await volumes.find(name, signal);
  if (parts === undefined) throw gone();
  const made = await Promise.allSettled(Array.from({ length: 4 }, () => volumes.newOf(owner)));
  const own = made.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const ended = async () => {
    await Promise.all(own.map((volume) => volumes.remove(volume.name)));
  };
  const [ofWorkspace, ofHome] = [own.slice(0, 2), own.slice(2)];
  if (own.length < made.length) {
    await ended();
    throw made.find((one) => one.status === "rejected")?.reason;
  }
  return {
    mounts: [
      overlayOf(parts.workspace, ofWorkspace, folders.workspace, owner),
      overlayOf(parts.home, ofHome, folders.home, owner),
      { ...mountOf(parts.workspace, join(heldAt, "workspace")), ReadOnly: true },
      { ...mountOf(parts.home, join(heldAt, "home")), ReadOnly: true },
    ],
    tmpfs: { [heldAt]: "rw,noexec,nosuid,nodev,mode=700,size=4k" },
    confirm: async (within) => {
      if (!isSame(await volumes.find(name, within), parts)) throw gone();
    },
    ended,
  };
}

/**
 * Where a sandbox holds the layer that it began with. No process of a run gets in: on these files, which others have too, it could
 * have leases, which hold up every other that opens them, and locks. The overlay's files are the sandbox's own.
 */
const heldAt = "/opt/ambit-layer";

const gone = () =>
  new SandboxFailed("The prepared files that the sandbox was to begin with were removed", {
    concerns: "session",
  });

const isSame = (found: LayerParts | undefined, { workspace, home }: LayerParts) =>
  found?.workspace.name === workspace.name && found.home.name === home.name;

function mountOf({ name }: Volume, target: string): MountSettings {
  return {
    Type: "volume",
    Source: name,
    Target: target,
    VolumeOptions: { NoCopy: true, Labels: {}, DriverConfig: { Name: "local", Options: {} } },
  };
}

function overlayOf(
  lower: Volume,
  [upper, work]: readonly Volume[],
  target: string,
  owner: Ownership,
): MountSettings {
  const folders = { lowerdir: lower, upperdir: upper, workdir: work };
  const named = Object.entries(folders).map(([option, volume]) => `${option}=${volume?.folder}`);
  // Without the middle two, a folder of the layer can't be renamed, and a changed file leaves its other hard links behind.
  const o = ["nosuid", "nodev", "redirect_dir=on", "index=on", ...named].join(",");
  const Options = { type: "overlay", device: "overlay", o };
  return {
    Type: "volume",
    Source: "",
    Target: target,
    VolumeOptions: { NoCopy: true, Labels: { ...labelsOf(owner) }, DriverConfig: { Name: "local", Options } },
  };
}
