import type { RemoteSandboxOptions } from "@ambit/bridge";
import { daemon } from "../inside/daemon.js";

/** The same in every sandbox, the canary's too. Each is a container or machine of its own, with its own files and `/proc`. */
export const bridgeSettings = {
  folderName: "session",
  ownSystem: true,
  supervisor: daemon,
} as const satisfies Partial<RemoteSandboxOptions>;
