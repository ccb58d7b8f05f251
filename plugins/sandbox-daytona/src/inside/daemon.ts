import type { BridgeFacts } from "@ambit/bridge";
import type { Capability } from "@ambit/core/plugin";

/**
 * Daytona's daemon inside, which takes orders of everybody that reaches it, and carries them out as the image's user:
 * 2280 its API, 22220 SSH with any key, 22222 a terminal, 33333 recordings. Its sessions' logs hold what the bridge
 * says, and anybody may read them where its home is open.
 */
export const daemon = {
  ports: [2_280, 22_220, 22_222, 33_333],
  files: ["~/.daytona", "/tmp/daytona-daemon.log"],
} as const;

/** What a process that gives the daemon orders gets around: its user, its environment, what it started. */
export const fallsWithDaemon = [
  "environment.per-tool",
  "environment.named-only",
  "process.contained",
  "secrets.hidden",
] as const satisfies readonly Capability[];

/** Undefined where no process of the sandbox reaches the daemon. */
export function whyDaemonAnswers({ openPorts, whyOpen }: BridgeFacts): string | undefined {
  if (openPorts.length === 0) return undefined;
  const why = whyOpen === undefined ? "" : ` (${whyOpen})`;
  return `Daytona's daemon takes orders of every process inside, on ${openPorts.join(", ")}${why}`;
}

export const daemonFix =
  "use a snapshot or image whose user is root, with nftables or iptables, on runners that let root set rules inside";
