import { chmod, copyFile, mkdir, mkdtemp, rename, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { debianArguments, nodeManifests, type RecipeOptions, recipeOf, sourceDate } from "./recipe.js";

export interface BuildOptions extends RecipeOptions {
  readonly signal?: AbortSignal;
}

/**
 * Builds the image's root file system as an uncompressed tar archive: Debian's packages from the mirrors that
 * mmdebstrap uses, signatures checked; Node and npm from the npm registry, hashes checked. Takes Linux on x64 or arm64,
 * mmdebstrap and npm; as root, or with the user namespaces that mmdebstrap needs. The archive appears only when it is complete.
 *
 * @throws Error that names what is missing, or with the last words of the program that failed.
 */
export async function buildSandboxImage(
  archive: string,
  { signal, ...options }: BuildOptions = {},
): Promise<void> {
  const recipe = recipeOf(options);
  await runProgram("mmdebstrap", ["--version"], { signal }).catch(explain);
  const folder = await mkdtemp(join(tmpdir(), "ambit-sandbox-image-"));
  const unfinished = `${archive}.${process.pid}`;
  try {
    // In a user namespace mmdebstrap reads it as another user.
    await chmod(folder, 0o755);
    const node = await installNode(folder, signal);
    const env = { SOURCE_DATE_EPOCH: String(sourceDate) };
    await runProgram("mmdebstrap", debianArguments(recipe, node, unfinished), { env, signal });
    await rename(unfinished, archive);
  } finally {
    await rm(unfinished, { force: true });
    await rm(folder, { recursive: true, force: true });
  }
}

/** Node and npm, as they are to be below `/usr/local`. */
async function installNode(folder: string, signal: AbortSignal | undefined): Promise<string> {
  const installed = join(folder, "installed");
  const [bin, lib] = [join(folder, "local", "bin"), join(folder, "local", "lib")];
  for (const path of [installed, bin, lib]) await mkdir(path, { recursive: true });
  for (const name of ["package.json", "package-lock.json"])
    await copyFile(fileURLToPath(new URL(name, nodeManifests)), join(installed, name));
  const quiet = ["--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"];
  await runProgram("npm", ["ci", ...quiet], { cwd: installed, signal });
  const modules = join(installed, "node_modules");
  await rename(join(modules, `node-linux-${process.arch}`, "bin", "node"), join(bin, "node"));
  await mkdir(join(lib, "node_modules"));
  await rename(join(modules, "npm"), join(lib, "node_modules", "npm"));
  for (const name of ["npm", "npx"])
    await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(bin, name));
  return join(folder, "local");
}

function explain(error: Error): never {
  if (!("code" in error && error.code === "ENOENT")) throw error;
  throw new Error(
    "mmdebstrap is missing: apt-get install mmdebstrap (and on Ubuntu debian-archive-keyring)",
    { cause: error },
  );
}

/** In characters: enough of a program's last words for an error. */
const maxExcerptLength = 4_000;

interface BuildProgramOptions {
  readonly cwd?: string;
  /** Added to this process's own. */
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** Runs a program to its end. Rejects with the end of what it printed, or with the reason of an abort. */
export async function runProgram(
  program: string,
  argv: readonly string[],
  { cwd, env, signal }: BuildProgramOptions = {},
): Promise<void> {
  signal?.throwIfAborted();
  const {
    failed,
    all,
    signal: endedBy,
    exitCode,
    cause,
  } = await execa(program, argv, {
    cwd,
    env,
    stdin: "ignore",
    all: true,
    reject: false,
    // It removes its own temporary folders before it ends, which may take long.
    cancelSignal: signal,
    forceKillAfterDelay: false,
  });
  signal?.throwIfAborted();
  // It couldn't be started.
  if (exitCode === undefined && endedBy === undefined && cause !== undefined) throw cause;
  if (failed)
    throw new Error(
      `${program} failed (${endedBy ?? `exit code ${exitCode}`}):\n${all.slice(-maxExcerptLength).trim()}`,
    );
}
