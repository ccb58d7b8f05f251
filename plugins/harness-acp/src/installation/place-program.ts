import { realpathSync } from "node:fs";
import { dirname } from "node:path/posix";
import {
  type Command,
  HarnessFailed,
  type ImageRootfs,
  type RequiredPath,
  type Rootfs,
  type Sandbox,
} from "@ambit/core/plugin";
import type { Profile } from "../profiles/profile.js";
import type { CompiledCode } from "./compile-ahead.js";
import type { Executable, LocatedProgram } from "./locate-program.js";

/** An agent's program in the form that a sandbox starts. */
export interface PlacedProgram {
  readonly argv: readonly [program: string, ...args: string[]];
  /** `PATH` of the agent and its child processes. */
  readonly searchPath: string;
  /** The command that starts the program's companion. */
  readonly companion?: Command["argv"];
  /** What Node.js can load first, so that the companion isn't compiled again. */
  readonly compiled?: string;
}

const systemPath = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/** What a deployer chose, and what is on the runner. */
export interface ProgramChoice {
  /** Undefined if it isn't installed on the runner. */
  readonly located: LocatedProgram | undefined;
  /** The Node.js that runs a script on the runner. Default: the runner's own. */
  readonly node?: string | undefined;
  /** The program's compiled code, if there is some. */
  readonly compiled?: CompiledCode | undefined;
  /** The deployer's choice of the image's own program. */
  readonly commandInImage?: string | undefined;
}

/** Whether a run needs the program on the runner: an image may contain it. */
export function isNeededOnRunner({ program }: Profile, rootfs: Rootfs): boolean {
  return rootfs === "host" || program.inImage === "copied";
}

/** Whether a sandbox gets the runner's program: mounted only where both have the same kind of system. */
export function comesFromRunner(
  profile: Profile,
  rootfs: Rootfs,
  { located, commandInImage }: ProgramChoice,
): boolean {
  if (located === undefined) return false;
  if (rootfs === "host") return true;
  if (commandInImage !== undefined) return false;
  const { inImage } = profile.program;
  const isMounted = inImage === "mounted" && rootfs === "image-with-mounts" && process.platform === "linux";
  return inImage === "copied" || isMounted;
}

/** The runner's files that a sandbox must show, mount or copy. */
export function requiredPathsOf(
  profile: Profile,
  rootfs: Rootfs,
  choice: ProgramChoice,
): readonly RequiredPath[] {
  const { located, node, compiled } = choice;
  if (located === undefined || !comesFromRunner(profile, rootfs, choice)) return [];
  if (rootfs !== "host") return located.files;
  return [
    ...located.files,
    ...(located.isScript ? [{ path: realNode(node), what: "Node.js" }] : []),
    ...(compiled === undefined ? [] : [{ path: compiled.folder, what: profile.title, isOptional: true }]),
  ];
}

/** What the harness of a sandbox with this image was asked with. */
export function rootfsOf(image: ImageRootfs | undefined): Rootfs {
  if (image === undefined) return "host";
  return image.mounted ? "image-with-mounts" : "image";
}

/** How a sandbox starts the program. Undefined for one that isn't installed on the runner, and would come from there. */
export function place(
  profile: Profile,
  image: ImageRootfs | undefined,
  choice: ProgramChoice,
): PlacedProgram | undefined {
  return image === undefined ? placeOnRunner(choice) : placeInImage(profile, choice, image);
}

/** Among the runner's files, which the sandbox shows at their own paths. */
function placeOnRunner({ located, node, compiled }: ProgramChoice): PlacedProgram | undefined {
  if (located === undefined) return undefined;
  const { file, isScript, companion } = located;
  const argvOf = (program: Executable): Command["argv"] =>
    program.isScript ? [realNode(node), program.file] : [program.file];
  const interpreter = isScript || companion?.isScript ? realNode(node) : undefined;
  // The agent's child processes must also find an interpreter outside the system's folders.
  const programFolder = dirname(interpreter ?? file);
  return {
    argv: argvOf(located),
    searchPath: (systemPath.includes(programFolder) ? systemPath : [programFolder, ...systemPath]).join(":"),
    companion: companion && argvOf(companion),
    ...(compiled === undefined ? {} : { compiled: compiled.enable }),
  };
}

/** In an image: the runner's program below `copyRoot`, or the image's own. */
function placeInImage(
  profile: Profile,
  choice: ProgramChoice,
  image: ImageRootfs,
): PlacedProgram | undefined {
  const { program } = profile;
  const { located, commandInImage } = choice;
  const { searchPath, copyRoot } = image;
  if (located !== undefined && comesFromRunner(profile, rootfsOf(image), choice)) {
    const argvOf = ({ file, isScript }: Executable): Command["argv"] =>
      isScript ? ["node", `${copyRoot}${file}`] : [`${copyRoot}${file}`];
    const { companion } = located;
    return {
      argv: argvOf(located),
      searchPath,
      companion: companion && argvOf(companion),
    };
  }
  if (commandInImage === undefined && program.inImage === "copied") return undefined;
  const { companion } = program;
  return {
    argv: [commandInImage ?? program.bin],
    searchPath,
    ...(companion === undefined ? {} : { companion: [companion.bin] }),
  };
}

/**
 * Its real path: an entry of `PATH` may be a version manager's shim, which starts another program. Node resolves the links of
 * its own.
 */
function realNode(node: string | undefined): string {
  return node === undefined ? process.execPath : realpathSync(node);
}

/** Milliseconds for the look, after a start that has failed already. */
const checkTimeoutMs = 10_000;

interface ExpectedInImage {
  readonly title: string;
  /** How its program gets there. */
  readonly fix: string;
}

/** What a start failed with: that the image lacks the program, if it does; else the error as it is. */
export async function namingMissing(
  error: unknown,
  sandbox: Sandbox,
  { argv: [program], searchPath }: PlacedProgram,
  { title, fix }: ExpectedInImage,
): Promise<unknown> {
  try {
    const look = await sandbox.spawn({
      argv: ["/bin/sh", "-c", 'command -v -- "$0" >/dev/null', program],
      env: { PATH: searchPath },
      signal: AbortSignal.timeout(checkTimeoutMs),
    });
    const { code } = await look.exit;
    if (code === 0 || code === null) return error;
  } catch {
    // The sandbox can't tell: then the start's own error says more.
    return error;
  }
  return new HarnessFailed(`${title} isn't in the sandbox's image, which has no "${program}": ${fix}.`, {
    cause: error,
  });
}
