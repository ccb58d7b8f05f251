import type { SeccompArchitecture } from "@ambit/attacks/system-calls";
import { stepsProgram } from "../enter/program.js";
import {
  type Entering,
  enteringProgram,
  mountingSteps,
  openingSteps,
  type PodMounts,
} from "../enter/steps.js";
import { pollSeconds, waitUntilIdle, wholeSeconds } from "./idle.js";
import { hiddenFolder, hostsFile, messageFile, ownHosts, scratchFolders } from "./mounts.js";

export const enteringProgramName = "enter";

/**
 * Puts the entering program into the bridge's folder, closes both to everyone but root, and waits. The program can be executed
 * once everything else is done: the first command waits for that.
 */
const script = (prepare: string, clear: string) => `umask 022; folder=$1; idle=$2; step=$3
write() { printf %s "$1" | base64 -d > "$2"; }
machine=$(uname -m)
case $machine in x86_64) programs=$4 ;; aarch64) programs=$5 ;; *) echo "no system call is known on $machine"; exit 1 ;; esac
shift 5
read -r enter open mount <<END
$programs
END
chmod 700 ${hiddenFolder} || exit 1
${prepare}
write "$enter" "$folder/${enteringProgramName}" && chmod 500 "$folder/${enteringProgramName}" || exit 1
${clear}${waitUntilIdle}`;

const [openProgram, mountProgram] = [`${hiddenFolder}/open`, `${hiddenFolder}/mount`];

/** Folders are made between the two programs, while the image can be written. What fails is in the pod's last message. */
const ownMounts = script(
  `write "$open" ${openProgram} && write "$mount" ${mountProgram} && chmod 500 ${openProgram} ${mountProgram} || exit 1
printf '${ownHosts.replaceAll("\n", "\\n")}' > ${hostsFile} || exit 1
${openProgram} /bin/sh -c 'mkdir -p "$@" && exec ${mountProgram} /bin/sh -c :' sh "$@" > ${messageFile} 2>&1 || exit 1`,
  `rm -f ${openProgram} ${mountProgram}\n`,
);

const volumes = script('chmod 755 "$folder" && chmod 1777 "$@" || exit 1', "");

export interface HolderOptions extends Pick<Entering, "podShape" | "isNetworkOpen"> {
  /**
   * Milliseconds without any process of root besides itself after which a pod's first process ends: the guest daemon ends when its
   * runner is silent, and no process of a run is root. On a busy node, a runner may need as long as it waits for a pod to bring
   * the guest daemon.
   */
  readonly idleMs: number;
  /** The bridge's folder. */
  readonly folder: string;
  /** Those that the pod makes itself, in the shape `user-namespace`. */
  readonly mounts: PodMounts;
}

/** The first command of a pod. Pure. */
export function holderCommand(options: HolderOptions): string[] {
  const { folder, idleMs, podShape, mounts } = options;
  const isApart = podShape === "user-namespace";
  const folders = [...mounts.onDisk, ...mounts.inMemory.map(({ path }) => path)];
  return [
    ...["/bin/sh", "-c", isApart ? ownMounts : volumes, "sh"],
    ...[folder, wholeSeconds(idleMs), `${pollSeconds}`],
    ...[programsFor("x64", options), programsFor("arm64", options)],
    ...(isApart ? folders : scratchFolders),
  ];
}

function programsFor(
  architecture: SeccompArchitecture,
  { folder, podShape, isNetworkOpen, mounts }: HolderOptions,
): string {
  const sealed = mounts.files.map(({ to }) => to);
  const entering = { podShape, isNetworkOpen, folders: [folder, ...scratchFolders], sealed };
  const own = [openingSteps(architecture), mountingSteps(architecture, mounts)];
  return [
    enteringProgram(architecture, entering),
    ...(podShape === "user-namespace" ? own.map((steps) => stepsProgram(architecture, steps)) : []),
  ]
    .map((program) => program.toString("base64"))
    .join(" ");
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
