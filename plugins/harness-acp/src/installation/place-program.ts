import { realpathSync } from "node:fs";
import { dirname } from "node:path/posix";
import type { Command, ImageRootfs, RequiredPath, Rootfs } from "@ambit/core/plugin";
import type { Profile } from "../profiles/profile.js";
import type { Executable, LocatedProgram } from "./locate-program.js";

/** An agent's program in the form that a sandbox starts. */
export interface PlacedProgram {
  readonly argv: readonly [program: string, ...args: string[]];
  /** `PATH` of the agent and its child processes. */
  readonly searchPath: string;
  /** The command that starts the program's companion. */
  readonly companion?: Command["argv"];
}

const systemPath = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** Whether a run needs the program on the runner: an image may contain it. */
export function isNeededOnRunner({ program }: Profile, rootfs: Rootfs): boolean {
  return rootfs === "host" || program.inImage === "copied";
}

/** The runner's files that a sandbox must show or copy. */
export function requiredPathsOf(
  profile: Profile,
  rootfs: Rootfs,
  located: LocatedProgram | undefined,
  node = process.execPath,
): readonly RequiredPath[] {
  if (located === undefined || !isNeededOnRunner(profile, rootfs)) return [];
  return rootfs === "host" && located.isScript
    ? [...located.files, { path: realNode(node), what: "Node.js" }]
    : located.files;
}

/** Among the runner's files, which the sandbox shows at their own paths. */
export function placeOnRunner(
  located: LocatedProgram | undefined,
  node = process.execPath,
): PlacedProgram | undefined {
  if (located === undefined) return undefined;
  const { file, isScript, companion } = located;
  const argvOf = (program: Executable): Command["argv"] =>
    program.isScript ? [realNode(node), program.file] : [program.file];
  const interpreter = isScript || companion?.isScript ? realNode(node) : undefined;
  // The agent's child processes must also find an interpreter outside the system's folders.
  const own = dirname(interpreter ?? file);
  return {
    argv: argvOf(located),
    searchPath: (systemPath.includes(own) ? systemPath : [own, ...systemPath]).join(":"),
    ...(companion === undefined ? {} : { companion: argvOf(companion) }),
  };
}

/** In an image: the copy that the sandbox was given, or the image's own program. */
export function placeInImage(
  { program }: Profile,
  located: LocatedProgram | undefined,
  { searchPath, copyRoot }: ImageRootfs,
  command: string | undefined,
): PlacedProgram | undefined {
  if (command !== undefined || program.inImage === "installed") {
    const { companion } = program;
    const argv: Command["argv"] = [command ?? program.bin];
    return { argv, searchPath, ...(companion === undefined ? {} : { companion: [companion.bin] }) };
  }
  if (located === undefined) return undefined;
  const file = `${copyRoot}${located.file}`;
  return { argv: located.isScript ? ["node", file] : [file], searchPath };
}

/** Its real path: an entry of `PATH` may be a version manager's shim, which starts another program. */
function realNode(node: string): string {
  return realpathSync(node);
}
