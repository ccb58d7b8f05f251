import type { Shape } from "@ambit/backend-kit";
import { imageStore } from "@ambit/egress/credentials";
import type { KubernetesConfig } from "../config.js";
import type { PodMounts } from "../enter/steps.js";

/** The runtime writes a container's last message here: no user but root may enter the folder. */
export const hiddenFolder = "/dev/.ambit";
export const messageFile = `${hiddenFolder}/termination-log`;
/** What a pod has as `/etc/hosts`: nothing of the cluster. */
export const ownHosts = "127.0.0.1 localhost\n::1 localhost\n";
export const hostsFile = `${hiddenFolder}/hosts`;
/** Folders that every process of a run may write to. */
export const scratchFolders = ["/tmp", "/var/tmp", "/dev/shm"];
/** The runtime's own files over the image's. */
const runtimeFiles = ["/etc/hostname", "/etc/resolv.conf"];

/** Whether root adds authorities to the image's: the store is then a copy, which no process of a run can write. Pure. */
export const trustsMore = (
  { hasSecrets }: Shape,
  { trustedAuthorities }: Pick<KubernetesConfig, "trustedAuthorities">,
) => hasSecrets || trustedAuthorities.length > 0;

/** The mounts that a pod in the shape `user-namespace` makes itself: for a volume, the kubelet would let it wait. Pure. */
export function mountsOf(
  shape: Shape,
  { bridge, scratchMb, trustedAuthorities }: KubernetesConfig,
): PodMounts {
  const { diskMb } = shape.boundary.resources;
  const { folder } = bridge;
  return {
    onDisk: [
      ...(diskMb === undefined ? [folder] : []),
      ...(trustsMore(shape, { trustedAuthorities }) ? [imageStore] : []),
    ],
    inMemory: [
      ...(diskMb === undefined ? [] : [{ path: folder, sizeMb: diskMb, mode: "755" }]),
      ...scratchFolders.map((path) => ({ path, sizeMb: scratchMb, mode: "1777" })),
    ],
    files: [
      { from: hostsFile, to: "/etc/hosts" },
      // Each becomes a mount also where a runtime writes into the image instead.
      ...runtimeFiles.map((path) => ({ from: path, to: path })),
    ],
  };
}
