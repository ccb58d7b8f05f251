import type { Ownership, Shape } from "@ambit/backend-kit";
import type { FirstCommand } from "@ambit/bridge";
import type { Evidence, Log } from "@ambit/core/plugin";
import type { PodShape } from "../enter/steps.js";
import { enteringCommand, enteringProgramName } from "../pod/holder.js";
import { manifestOf } from "../pod/manifest.js";
import type { LeaseReference } from "../pod/placement.js";
import { notPrepared, type StartedPod, type StartOptions, startPod } from "./start-pod.js";

export interface SandboxPodOptions extends Omit<StartOptions, "manifest" | "first" | "created"> {
  readonly shape: Shape;
  readonly podShape: PodShape;
  readonly owner: Ownership;
  readonly lease: LeaseReference;
  /** The bridge's, inside. */
  readonly first: FirstCommand;
}

export interface StartedSandboxPod extends Omit<StartedPod, "running" | "lines"> {
  /** Once the running pod has been read back too. Rejects if it isn't what was asked for: nothing may run in it then. */
  readonly evidence: Promise<Evidence>;
}

/**
 * It says what it sees and becomes the first pipe to the guest daemon: each command takes the node some tens of milliseconds. So
 * it also waits for the pod's first process instead of being started again, for a second or more, and the shell itself reads.
 */
const firstScript = `tries=0; until [ -x "$0" ]; do [ $tries -lt 100 ] || exit ${notPrepared}; tries=$((tries + 1)); sleep 0.01; done
for file in /proc/self/uid_map /proc/sys/kernel/osrelease; do read -r line < "$file"; echo "$line"; done; exec "$@"`;
const firstLines = 2;

/** The pod of a sandbox. @throws SandboxFailed; nothing is left then */
export async function startSandboxPod(
  options: SandboxPodOptions,
  log: Log,
  signal: AbortSignal,
): Promise<StartedSandboxPod> {
  const { config, shape, podShape, first } = options;
  const { bridge, searchPath } = config;
  const manifest = manifestOf(options);
  const entering = enteringCommand(bridge.folder, first.argv, searchPath);
  const argv = ["/bin/sh", "-c", firstScript, `${bridge.folder}/${enteringProgramName}`, ...entering];
  const words = { argv, count: firstLines, input: first.input };
  const { lines, running, ...started } = await startPod({ ...options, manifest, first: words }, log, signal);
  const [userMap = "", kernel = ""] = lines;
  const limits = manifest.spec?.containers[0]?.resources?.limits;
  const { memoryMb, cpus } = shape.boundary.resources;
  const evidence = running.then((pod) => ({
    "kubernetes.pod": `${config.namespace}/${pod.metadata.name}`,
    "kubernetes.node": pod.spec.nodeName ?? "unknown",
    "kubernetes.shape": podShape,
    "kubernetes.image": config.image,
    "kubernetes.kernel": kernel,
    "kubernetes.userMap": userMap.trim().replaceAll(/\s+/g, " "),
    ...(config.runtimeClass === undefined ? {} : { "kubernetes.runtimeClass": config.runtimeClass }),
    ...(memoryMb === undefined ? {} : { "kubernetes.memory": limits?.memory ?? "none" }),
    ...(cpus === undefined ? {} : { "kubernetes.cpu": limits?.cpu ?? "none" }),
  }));
  return { ...started, evidence };
}
