import { readFile } from "node:fs/promises";
import type { BridgeFacts, RemoteSandboxOptions } from "@ambit/bridge";
import type { ActorGap, Boundary, Capability } from "@ambit/core/plugin";
import { z } from "zod";

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

const ordersSchema = z.strictObject({
  /** Ports that accepted a connection. */
  open: z.array(z.int()),
  /** What the daemon printed for the request; null if it refused. */
  printed: z.string().nullable(),
});

/**
 * Sends an order to Daytona's daemon from inside. Not an attempt of the catalogue: it speaks the daemon's own protocol, which no
 * other sandbox has. The catalogue tries the supervisors that all backends have in common.
 */
export async function ordersProgram(node: string, limitMs: number): Promise<readonly [string, ...string[]]> {
  const source = await readFile(new URL("../../inside/orders.cjs", import.meta.url));
  const start = `eval(Buffer.from("${source.toString("base64")}","base64").toString())`;
  return [node, "-e", start, JSON.stringify({ ports: daemon.ports, limitMs })];
}

/** @throws when no line of the output is the program's */
export function readOrders(output: string): z.output<typeof ordersSchema> {
  const line = output.split("\n").findLast((text) => text.startsWith("{"));
  if (line === undefined) throw new Error(`a program in the sandbox said "${output.trim().slice(0, 200)}"`);
  return ordersSchema.parse(JSON.parse(line));
}

/** The same in every sandbox, the canary's too. Each is a container or machine of its own, with its own files and `/proc`. */
export const bridgeSettings = {
  folderName: "session",
  ownSystem: true,
  supervisor: daemon,
} as const satisfies Partial<RemoteSandboxOptions>;
