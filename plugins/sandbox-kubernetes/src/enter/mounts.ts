import type { SeccompArchitecture } from "@ambit/attacks/system-calls";
import { callIn, text } from "./calls.js";
import { bind, noDevices, noSuid, remount } from "./flags.js";
import type { Step } from "./program.js";
import { userNamespaceTest } from "./user-namespace.js";

/** What is mounted over the image of a pod in the shape `user-namespace`, by the pod itself. Paths are absolute. */
export interface PodMounts {
  /** Folders that keep the image's content and can be written: what is written is the container's, on the node's disk. */
  readonly onDisk: readonly string[];
  /** Empty folders in memory. `mode` in octal. */
  readonly inMemory: readonly { readonly path: string; readonly sizeMb: number; readonly mode: string }[];
  /** Files at other places. */
  readonly files: readonly { readonly from: string; readonly to: string }[];
}

/** Lets root make folders in the image that the runtime mounted read-only. Pure. */
export function openingSteps(architecture: SeccompArchitecture): readonly Step[] {
  return [
    ...userNamespaceTest(architecture),
    {
      call: callIn(architecture, "mount"),
      // Flags that the runtime has set can't be taken away, and more of them do no harm.
      arguments: [0, text("/"), 0, remount | bind | noSuid | noDevices],
      failure: "/ can't be mounted with the right to write",
    },
  ];
}

/** Makes the mounts. The entering program gives them their flags, and closes the image. Pure. */
export function mountingSteps(
  architecture: SeccompArchitecture,
  { onDisk, inMemory, files }: PodMounts,
): readonly Step[] {
  const call = callIn(architecture, "mount");
  return [
    ...onDisk.map((path) => ({
      call,
      arguments: [text(path), text(path), 0, bind],
      failure: `${path} can't be mounted with what the image has there`,
    })),
    ...inMemory.map(({ path, sizeMb, mode }) => ({
      call,
      arguments: [
        ...[text("tmpfs"), text(path), text("tmpfs"), noSuid | noDevices],
        text(`size=${sizeMb}m,mode=${mode}`),
      ],
      failure: `${path} can't be mounted with a size in memory`,
    })),
    ...files.map(({ from, to }) => ({
      call,
      arguments: [text(from), text(to), 0, bind],
      failure: `${to} can't be mounted with another file`,
    })),
  ];
}
