import type { BridgeFacts } from "@ambit/bridge";
import type { ActorGap, Boundary, Capability } from "@ambit/core/plugin";

/**
 * Daytona's daemon inside. It accepts requests of every process that reaches it, and executes them as the image's user:
 * 2280 its API, 22220 SSH with any key, 22222 a terminal, 33333 recordings. Its sessions' logs contain the bridge's
 * output, and are readable by everyone if its home is open. Its code interpreter is a Python, as the image's user, that
 * imports modules from the folder of its script: the one for temporary files.
 */
export const daemon = {
  ports: [2_280, 22_220, 22_222, 33_333],
  files: ["~/.daytona", "/tmp/daytona-daemon.log"],
  scripts: ["daytona_repl_worker.py"],
} as const;

/** The daemon serves root, as whom connections of the runner come in: none may lead to it. Pure. */
export function inboundGaps({ inbound = [] }: Pick<Boundary, "inbound">): readonly ActorGap[] {
  const taken = inbound.filter((port) => daemon.ports.some((one) => one === port));
  if (taken.length === 0) return [];
  return [
    {
      capability: "inbound.ports",
      reason: `Daytona's own daemon has the port ${taken.join(", ")} inside`,
      fix: "let the server inside listen on another port, and name that in ports",
    },
  ];
}

/**
 * Capabilities that a process bypasses by sending requests to the daemon, which runs them as another user, in another
 * environment and process tree.
 */
export const lostToDaemon = [
  "environment.per-tool",
  "environment.named-only",
  "process.contained",
  "secrets.hidden",
] as const satisfies readonly Capability[];

/** Undefined if no process of the sandbox reaches the daemon. */
export function whyDaemonAnswers({ openPorts, whyOpen }: BridgeFacts): string | undefined {
  if (openPorts.length === 0) return undefined;
  const why = whyOpen === undefined ? "" : ` (${whyOpen})`;
  return `Daytona's daemon accepts requests of every process inside, on ${openPorts.join(", ")}${why}`;
}

export const daemonFix =
  "use a snapshot or image whose user is root, with nftables or iptables, on runners that let root set rules inside";
