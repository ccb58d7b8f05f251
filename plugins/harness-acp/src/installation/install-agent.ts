import { existsSync, readFileSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { HarnessFailed, type Installation } from "@ambit/core/plugin";
import { z } from "zod";
import type { Profile } from "../profiles/profile.js";
import { compileAhead, compiledCode } from "./compile-ahead.js";
import { agentsFolder, locateProgram, type WhereToLook } from "./locate-program.js";

/** A manifest and a lockfile for each agent: its packages and their dependencies, each with its digest. */
const pins = fileURLToPath(new URL("../../pins/", import.meta.url));

/** `overrides`: of the agent behind an adapter, in place of the version that the adapter asks for. */
const pinSchema = z.object({
  dependencies: z.record(z.string(), z.string()),
  overrides: z.record(z.string(), z.string()).default({}),
});

/** How `ambit agents` shows and installs this agent; undefined for one that is included in the plugin. */
export function installationOf(profile: Profile, where: WhereToLook): Installation | undefined {
  const pin = join(pins, profile.id);
  if (!existsSync(pin)) return undefined;
  const manifest = readFileSync(join(pin, "package.json"), "utf8");
  const { dependencies, overrides } = pinSchema.parse(JSON.parse(manifest));
  const { companion, package: name, adapts = "" } = profile.program;
  const testedAgent = overrides[adapts];
  const tested = dependencies[companion?.package ?? name] ?? "unknown";
  return {
    title: profile.title,
    packages: Object.entries({ ...dependencies, ...overrides }).map(([name, version]) => ({ name, version })),
    installed: () => {
      const located = locateProgram(profile, where);
      if (located === undefined) return undefined;
      const { version = "unknown", file: path, agent } = located;
      if (agent === undefined) return { version, tested, path };
      return { version, tested, path, agent: { ...agent, ...(testedAgent && { tested: testedAgent }) } };
    },
    install: (progress) => install(profile, pin, progress),
  };
}

/** First next to its final place: a failed or interrupted installation leaves the previous one untouched. */
async function install(profile: Profile, pin: string, progress: (line: string) => void) {
  await requirePlatform(pin, profile);
  const folder = agentsFolder();
  await mkdir(folder, { recursive: true });
  const begun = await mkdtemp(join(folder, `.${profile.id}-`));
  const former = `${begun}-former`;
  try {
    for (const file of ["package.json", "package-lock.json"])
      await copyFile(join(pin, file), join(begun, file));
    await npmInstall(begun, progress);
    await assertPinned(begun, pin, profile);
    const path = join(folder, profile.id);
    // Runs may read it as another user, if the operator configured that.
    await chmod(begun, 0o755);
    // A running server finds one whole version or the other.
    if (existsSync(path)) await rename(path, former);
    await rename(begun, path);
    const located = locateProgram(profile, { command: undefined, folder: path });
    if (located === undefined) {
      throw new HarnessFailed(
        `${profile.title} isn't published for ${process.platform} on ${process.arch}: install it by other means, and name its program in overrides.${profile.id}.command.`,
      );
    }
    const code = compiledCode(profile, located, process.execPath);
    // Without it, the agent only starts more slowly.
    if (code !== undefined)
      await compileAhead(code, process.execPath, true).catch((error: unknown) => progress(String(error)));
    return { path };
  } finally {
    for (const left of [begun, former]) await rm(left, { recursive: true, force: true });
  }
}

const lockSchema = z.object({
  packages: z.record(
    z.string(),
    z.object({
      integrity: z.string().optional(),
      os: z.array(z.string()).optional(),
      cpu: z.array(z.string()).optional(),
    }),
  ),
});

async function locked(file: string) {
  return lockSchema.parse(JSON.parse(await readFile(file, "utf8"))).packages;
}

/** @throws HarnessFailed, before anything is downloaded, if the agent's binary isn't pinned for this platform. */
async function requirePlatform(pin: string, { id, title, program }: Profile): Promise<void> {
  if (program.native === undefined) return;
  const pinned = await locked(join(pin, "package-lock.json"));
  const names = program.native.packages(process.platform, process.arch);
  if (names.some((name) => Object.hasOwn(pinned, `node_modules/${name}`))) return;
  const platforms = Object.values(pinned).flatMap(({ os = [], cpu = [] }) =>
    os.length === 1 && cpu.length === 1 ? [`${os[0]}-${cpu[0]}`] : [],
  );
  throw new HarnessFailed(
    `${title} is pinned for ${[...new Set(platforms)].join(", ")}, not for ${process.platform}-${process.arch}: install it by other means, and name its program in overrides.${id}.command of harness-acp.`,
  );
}

/**
 * npm checks the digest of each package in the lockfile, and adds missing ones, such as a binary for a platform that
 * wasn't pinned. Those are refused.
 */
async function assertPinned(folder: string, pin: string, { id, title }: Profile): Promise<void> {
  const pinned = await locked(join(pin, "package-lock.json"));
  const installed = await locked(join(folder, "node_modules", ".package-lock.json"));
  const others = Object.entries(installed).filter(
    ([path, { integrity }]) => integrity === undefined || pinned[path]?.integrity !== integrity,
  );
  if (others.length === 0) return;
  const names = others.map(([path]) =>
    path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length),
  );
  throw new HarnessFailed(
    `${title} needs packages on this platform that Ambit has no digest of (${names.join(", ")}): install it by other means, and name its program in overrides.${id}.command of harness-acp.`,
  );
}

/** Runs no install scripts. */
async function npmInstall(folder: string, progress: (line: string) => void): Promise<void> {
  const args = ["install", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--workspaces=false"];
  // Loaded where it is needed: a server starts without it.
  const { execa } = await import("execa");
  const npm = execa("npm", args, {
    cwd: folder,
    stdin: "ignore",
    stdout: "ignore",
    buffer: false,
    reject: false,
  });
  for await (const line of npm.iterable({ from: "stderr" })) progress(line);
  const { failed, exitCode, cause } = await npm;
  if (!failed) return;
  if (exitCode !== undefined)
    throw new HarnessFailed(`npm ended with exit code ${exitCode}: see its output above.`);
  throw new HarnessFailed("npm could not be started: install it with Node.js, and have it on the PATH.", {
    cause,
  });
}
