import type { SeccompArchitecture } from "@ambit/attacks/system-calls";
import { type Entering, enteringProgram } from "../enter/steps.js";
import { pollSeconds, waitUntilIdle, wholeSeconds } from "./idle.js";

export const enteringProgramName = "enter";

/**
 * Puts the entering program into the bridge's folder, closes both to everyone but root, and waits. It ends when nothing of
 * root has run beside it for a while: the guest daemon ends when its runner is silent, and no process of a run is root.
 */
const script = `umask 022; folder=$1; idle=$2; step=$3; hidden=$4
chmod 755 "$folder" && chmod 700 "$hidden" || exit 1
machine=$(uname -m)
case $machine in x86_64) program=$5 ;; aarch64) program=$6 ;; *) echo "no system call is known on $machine"; exit 1 ;; esac
shift 6
[ $# -eq 0 ] || chmod 1777 "$@" || exit 1
printf %s "$program" | base64 -d > "$folder/${enteringProgramName}.part" || exit 1
chmod 500 "$folder/${enteringProgramName}.part" && mv "$folder/${enteringProgramName}.part" "$folder/${enteringProgramName}" || exit 1
${waitUntilIdle}`;

export interface HolderOptions extends Omit<Entering, "folders"> {
  /**
   * Milliseconds without any process of root besides itself after which a pod's first process ends. On a busy node, a runner may
   * need as long as it waits for a pod to bring the guest daemon.
   */
  readonly idleMs: number;
  /** The bridge's folder. */
  readonly folder: string;
  /** A folder with what the runtime writes, which only root may enter. */
  readonly hidden: string;
  /** Folders of scratch. */
  readonly scratch: readonly string[];
}

/** The first command of a pod. Pure. */
export function holderCommand({ folder, hidden, scratch, idleMs, ...entering }: HolderOptions): string[] {
  const program = (architecture: SeccompArchitecture) =>
    enteringProgram(architecture, { ...entering, folders: [folder, ...scratch] }).toString("base64");
  return [
    ...["/bin/sh", "-c", script, "sh", folder, wholeSeconds(idleMs), `${pollSeconds}`, hidden],
    ...[program("x64"), program("arm64"), ...scratch],
  ];
}

/** A command inside the sandbox's own namespaces, behind its filter. Its program is looked up in `PATH`. Pure. */
export function enteringCommand(
  folder: string,
  argv: readonly string[],
  searchPath: string | undefined,
): readonly string[] {
  return [`${folder}/${enteringProgramName}`, ...shellCommand("", argv, searchPath)];
}

/** A command that the shell becomes after a script. Its program is looked up in `PATH`. Pure. */
export function shellCommand(
  script: string,
  argv: readonly string[],
  searchPath: string | undefined,
): readonly string[] {
  const path = searchPath === undefined ? "" : `PATH='${searchPath.replaceAll("'", "'\\''")}' `;
  return ["/bin/sh", "-c", `${script}${path}exec "$@"`, "sh", ...argv];
}
