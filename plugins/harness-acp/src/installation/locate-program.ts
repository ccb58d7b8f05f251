import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, parse, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { HomeMissing, type Installation, type RequiredPath, userFolder } from "@ambit/core/plugin";
import { z } from "zod";
import type { Profile, ProgramSource } from "../profiles/profile.js";

/** An executable file. */
export interface Executable {
  /** With all links resolved, except in a program that the deployer names: its path can decide what it does. */
  readonly file: string;
  /** Whether Node.js runs it. */
  readonly isScript: boolean;
}

export interface LocatedProgram extends Executable {
  /** The entry file of the agent behind an adapter, or its binary. */
  readonly companion?: Executable;
  /** Its package, if it is in one: for an adapter, the package of the agent itself. */
  readonly version?: string;
  /** The agent behind an adapter that has it among its dependencies. */
  readonly agent?: { readonly name: string; readonly version: string };
  /** The program with the packages it needs. */
  readonly files: readonly RequiredPath[];
  /** What an installation replaces: manifests of the agent's packages, or its program, and npm's list of a folder's packages. */
  readonly watched: readonly string[];
  /** Of these files, when it was located: see {@link stateOf}. */
  readonly state: string;
}

/** Which files these are: it differs once one was replaced, changed, added or removed. */
export function stateOf(files: readonly string[]): string {
  const states = files.map((file) => {
    const stat = statSync(file, { throwIfNoEntry: false });
    return stat && [stat.dev, stat.ino, stat.size, stat.mtimeMs, stat.ctimeMs];
  });
  return JSON.stringify(states);
}

/** When the latest of these files was put in place or changed, in milliseconds since 1970. */
export function changedAt(files: readonly string[]): number {
  return Math.max(0, ...files.map((file) => statSync(file, { throwIfNoEntry: false })?.ctimeMs ?? 0));
}

export interface WhereToLook {
  /** The deployer's path of the program, replacing the package. */
  readonly command?: string | undefined;
  /** Where the deployer installs agents; searched before this plugin's own `node_modules`. */
  readonly folder: string;
}

interface LocateOptions extends WhereToLook {
  /** Where Ambit installs this agent. */
  readonly agentFolder: string | undefined;
}

/** Finds an agent's program on disk, without running it. Undefined if it isn't installed. */
export function locateProgram(profile: Profile, where: WhereToLook): LocatedProgram | undefined {
  const options = { ...where, agentFolder: installedFolder(profile.id) };
  const entry = entryFile(profile.program, options);
  if (entry === undefined || !existsSync(entry)) return undefined;
  const { title, program } = profile;
  const entryProgram = executable(entry);
  const folder = packageAround(entryProgram.file);
  const file =
    options.command === undefined || entryProgram.isScript ? entryProgram.file : resolve(options.command);
  const { companion } = program;
  const behind = companion === undefined ? undefined : installed(companion.package, options);
  const behindEntry = companion && behind && binOf(behind, companion.bin);
  if (companion !== undefined && (behindEntry === undefined || !existsSync(behindEntry))) return undefined;
  // A deployer's own program isn't bundled like the one that it replaces.
  const isWhole = program.isBundled === true && options.command === undefined;
  const files = [
    ...(folder === undefined
      ? [file, ...pythonFolders(file)].map((path) => ({ path, what: title }))
      : pathsOf(isWhole ? [folder] : withDependencies(folder), title)),
    ...(behind === undefined ? [] : pathsOf(withDependencies(behind), title)),
    ...(program.files ?? []),
  ];
  // An adapter and its agent may share packages; a container has one mount at each place.
  const once = new Map(files.map((file) => [file.path, file]));
  const version = (behind ?? folder)?.manifest.version;
  const started = behindEntry ?? binaryOf(program, folder);
  const agent = agentBehind(profile, folder);
  const packages = [folder, behind, agent.folder].filter((each) => each !== undefined);
  const watched = packages.length === 0 ? [entryProgram.file] : packages.flatMap(manifestsOf);
  return {
    ...entryProgram,
    file,
    watched,
    state: stateOf(watched),
    files: [...once.values()],
    version,
    ...(agent.agent === undefined ? {} : { agent: agent.agent }),
    companion: started === undefined ? undefined : executable(started),
  };
}

/** The virtual environment that a program is in, and the Python that it was made with. */
function pythonFolders(file: string): readonly string[] {
  const folder = dirname(dirname(file));
  const settings = join(folder, "pyvenv.cfg");
  if (!existsSync(settings)) return [];
  const [, home = ""] = /^home\s*=\s*(.+)$/m.exec(readFileSync(settings, "utf8")) ?? [];
  const python = existsSync(home) ? dirname(realpathSync(home)) : "/";
  return python === "/" ? [folder] : [folder, python];
}

function agentBehind(
  { title, program: { adapts } }: Profile,
  adapter: PackageFolder | undefined,
): Pick<LocatedProgram, "agent"> & { readonly folder?: PackageFolder } {
  if (adapts === undefined || adapter === undefined) return {};
  const folder = findPackage(adapts, adapter.realPath);
  if (folder === undefined) return {};
  const version = folder.manifest.claudeCodeVersion ?? folder.manifest.version;
  return { folder, ...(version === undefined ? {} : { agent: { name: title, version } }) };
}

/** A package's manifest, and npm's list of what it has installed in the same `node_modules`. */
function manifestsOf({ path }: PackageFolder): readonly string[] {
  const end = path.lastIndexOf("/node_modules/");
  const manifest = join(path, "package.json");
  return end < 0 ? [manifest] : [manifest, join(path.slice(0, end), "node_modules", ".package-lock.json")];
}

/** The file of the program's binary, if this platform has one and its packages are installed. */
function binaryOf({ binary }: ProgramSource, folder: PackageFolder | undefined): string | undefined {
  const source = binary?.(process.platform, process.arch);
  if (source === undefined) return undefined;
  const folderOfBinary = source.packages.reduce<PackageFolder | undefined>(
    (around, name) => around && findPackage(name, around.realPath),
    folder,
  );
  const file = folderOfBinary && join(folderOfBinary.path, source.file);
  return file !== undefined && existsSync(file) ? file : undefined;
}

function executable(entry: string): Executable {
  const file = realpathSync(entry);
  return { file, isScript: /\.[cm]?js$/.test(file) };
}

/** How a deployer gets the program. */
export function installationFix(profile: Profile, installation: Installation | undefined): string {
  if (installation !== undefined) return `ambit agents install ${profile.id}`;
  const { package: name, companion } = profile.program;
  return `npm install ${[name, ...(companion === undefined ? [] : [companion.package])].join(" ")}`;
}

function entryFile(program: ProgramSource, options: LocateOptions): string | undefined {
  if (options.command !== undefined) return options.command;
  if (program.entry !== undefined) return program.entry;
  const folder = installed(program.package, options);
  if (folder === undefined) return undefined;
  if (program.native === undefined) return binOf(folder, program.bin);
  const names = program.native.packages(process.platform, process.arch);
  const native = names.map((name) => installed(name, options)).find((folder) => folder !== undefined);
  return native === undefined ? undefined : join(native.path, program.native.file);
}

/** In the deployer's folder, else where Ambit installs agents, else next to this plugin. */
function installed(name: string, options: LocateOptions): PackageFolder | undefined {
  const pluginFolder = fileURLToPath(new URL(".", import.meta.url));
  for (const folder of [options.folder, options.agentFolder, pluginFolder]) {
    if (folder === undefined) continue;
    const packageFolder = findPackage(name, folder);
    if (packageFolder !== undefined) return packageFolder;
  }
  return undefined;
}

function binOf({ path, manifest }: PackageFolder, bin: string): string | undefined {
  const entry = typeof manifest.bin === "string" ? manifest.bin : manifest.bin?.[bin];
  return entry === undefined ? undefined : join(path, entry);
}

/** Links are shown together with their targets: Node looks for a package at the link's place. */
function pathsOf(packages: readonly PackageFolder[], title: string): readonly RequiredPath[] {
  const paths = new Set(packages.flatMap(({ path, realPath }) => [realPath, path]));
  return [...paths].map((path) => ({ path, what: title }));
}

const manifestSchema = z.looseObject({
  name: z.string().optional(),
  version: z.string().optional(),
  /** Of Claude Code, in the package that brings it under a version of its own. */
  claudeCodeVersion: z.string().optional(),
  bin: z.union([z.string(), z.record(z.string(), z.string())]).optional(),
  dependencies: z.record(z.string(), z.string()).optional(),
  optionalDependencies: z.record(z.string(), z.string()).optional(),
  peerDependencies: z.record(z.string(), z.string()).optional(),
});
type PackageManifest = z.infer<typeof manifestSchema>;

interface PackageFolder {
  /** As it was found: inside a `node_modules`, possibly a link. */
  readonly path: string;
  /** With all links resolved. */
  readonly realPath: string;
  readonly manifest: PackageManifest;
}

/**
 * The package as Node would find it from a file in `from`: the nearest `node_modules` above it that has it.
 * Read from disk, since `exports` may hide a package's own manifest from `require.resolve`.
 */
export function findPackage(name: string, from: string): PackageFolder | undefined {
  for (const folder of withParents(from)) {
    const path = join(folder, "node_modules", name);
    const packageFolder = readPackage(path);
    if (packageFolder !== undefined) return packageFolder;
  }
  return undefined;
}

/** The package that a file belongs to. */
export function packageAround(file: string): PackageFolder | undefined {
  for (const folder of withParents(dirname(file))) {
    const packageFolder = readPackage(folder);
    // A manifest without a name only sets the module type (`{"type":"module"}`).
    if (packageFolder?.manifest.name !== undefined) return packageFolder;
  }
  return undefined;
}

/** The package and its installed dependencies, each folder once. */
export function withDependencies(root: PackageFolder): readonly PackageFolder[] {
  const folders = new Map<string, PackageFolder>([[root.path, root]]);
  const open = [root];
  for (let current = open.pop(); current !== undefined; current = open.pop()) {
    const { dependencies, optionalDependencies, peerDependencies } = current.manifest;
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...peerDependencies })) {
      const needed = findPackage(name, current.realPath);
      if (needed === undefined || folders.has(needed.path)) continue;
      folders.set(needed.path, needed);
      open.push(needed);
    }
  }
  return [...folders.values()];
}

function readPackage(path: string): PackageFolder | undefined {
  const file = join(path, "package.json");
  if (!existsSync(file)) return undefined;
  const manifest = manifestSchema.safeParse(JSON.parse(readFileSync(file, "utf8")));
  return manifest.success ? { path, realPath: realpathSync(path), manifest: manifest.data } : undefined;
}

function withParents(folder: string): readonly string[] {
  const folders = [folder];
  for (let current = folder; current !== parse(current).root; ) {
    current = dirname(current);
    folders.push(current);
  }
  return folders;
}

/**
 * Where `ambit agents install` puts agents, each in a folder named after it. Environment: `XDG_DATA_HOME`.
 *
 * @throws HomeMissing
 */
export function agentsFolder(environment: NodeJS.ProcessEnv = process.env): string {
  return join(userFolder("XDG_DATA_HOME", ".local/share", environment), "ambit", "agents");
}

/** Where one agent would have been put; undefined for a user without a home, who has installed none. */
export function installedFolder(id: string): string | undefined {
  try {
    return join(agentsFolder(), id);
  } catch (error) {
    if (error instanceof HomeMissing) return undefined;
    throw error;
  }
}
