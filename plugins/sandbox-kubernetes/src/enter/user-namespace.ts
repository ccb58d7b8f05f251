import type { SeccompArchitecture } from "@ambit/attacks/system-calls";
import { callIn, text } from "./calls.js";
import type { Step } from "./program.js";

/** AT_FDCWD, O_CLOEXEC. */
const [currentFolder, closeOnExecute] = [-100, 0o200_0000];

/** Ends a program whose root is the node's. Pure. */
export const userNamespaceTest = (architecture: SeccompArchitecture): readonly Step[] => [
  {
    call: callIn(architecture, "openat"),
    arguments: [currentFolder, text("/proc/self/uid_map"), closeOnExecute],
    failure: "/proc/self/uid_map can't be opened",
  },
  {
    call: callIn(architecture, "read"),
    arguments: ["last result", "buffer", 128],
    failure: "/proc/self/uid_map can't be read",
  },
  {
    call: "user namespace test",
    arguments: [],
    failure: "this pod has no user namespace of its own: its node ignores hostUsers",
  },
];
