/** What tests need of their machine, each in one place: how it is tried, and the reason of a skip where it is missing. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmdirSync } from "node:fs";
import { networkInterfaces } from "node:os";
import type { Plugin } from "vitest/config";
import { compilerPackages, compilerVersion, hasCompilers } from "../native/build.mjs";
import { installCommand } from "../platform.mjs";

interface Need {
  /** Tries it, without a trace. */
  isMet(): boolean;
  readonly reason: string;
}

const succeeds = (program: string, ...args: string[]) =>
  spawnSync(program, args, { stdio: "ignore" }).status === 0;
const runs = (program: string, ...args: string[]) =>
  spawnSync(program, args, { stdio: "ignore" }).error === undefined;

const jail = [
  ...["bwrap", "--unshare-all", "--unshare-user", "--ro-bind", "/", "/"],
  ...["--proc", "/proc", "--dev", "/dev", "true"],
] as const;
/** As sandboxes of root run: a container may let only root make a user namespace. */
const asOrdinaryUser = ["setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups"] as const;

/** Where Chromium is, on Debian and elsewhere. */
export const browsers = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** By the names that a test file's comment uses. */
export const needs: Readonly<Record<string, Need>> = {
  jail: {
    isMet: () => succeeds(...jail) && (process.getuid?.() !== 0 || succeeds(...asOrdinaryUser, ...jail)),
    reason:
      "no jail can be made: bubblewrap is missing, or user namespaces are refused (`ambit doctor` says which)",
  },
  docker: {
    isMet: () =>
      process.getuid?.() === 0
        ? ["/usr/sbin/dockerd", "/usr/bin/dockerd"].some((path) => existsSync(path))
        : existsSync("/var/run/docker.sock"),
    reason: "no Docker engine can be started: it needs root, and apt-get install docker.io runsc mmdebstrap",
  },
  python: {
    isMet: () => runs("python3", "--version"),
    reason: `no python3: ${installCommand(process.platform, "python3")}`,
  },
  git: {
    isMet: () => runs("git", "--version"),
    reason: `no git: ${installCommand(process.platform, "git")}`,
  },
  browser: {
    isMet: () => browsers.some((path) => existsSync(path)),
    reason: `no Chromium: ${installCommand(process.platform, "chromium")}`,
  },
  openssl: {
    isMet: () => runs("openssl", "version"),
    reason: `no openssl: ${installCommand(process.platform, "openssl")}`,
  },
  pgrep: {
    isMet: () => runs("pgrep", "--version"),
    reason: `no pgrep: ${installCommand(process.platform, "procps")}`,
  },
  cgroups: {
    isMet: () => ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].some((folder) => canMakeGroupIn(folder)),
    reason:
      "no group can be made in the memory cgroups: start the tests as root where they are mounted writable",
  },
  compilers: {
    isMet: hasCompilers,
    reason: `no gcc ${compilerVersion} for both machines, as Debian 12 has it: ${installCommand(process.platform, compilerPackages)}`,
  },
  ipv6: {
    isMet: () =>
      Object.values(networkInterfaces()).some((all) => all?.some(({ address }) => address === "::1")),
    reason: "::1 isn't an address of this machine",
  },
  init: {
    isMet: () =>
      process.platform === "linux" &&
      succeeds(
        "sh",
        "-c",
        // A busy machine may take long.
        'orphan=$(sh -c "sleep 0.05 >/dev/null & echo \\$!"); for wait in $(seq 100); do test -e /proc/$orphan || exit 0; sleep 0.1; done; exit 1',
      ),
    reason: "the first process doesn't wait for orphans: start the container with --init",
  },
};

/** A folder of the memory controller, of either version. */
function canMakeGroupIn(folder: string): boolean {
  const group = `${folder}/ambit-need-${process.pid}`;
  try {
    mkdirSync(group);
    const limits = existsSync(`${group}/memory.max`) || existsSync(`${group}/memory.limit_in_bytes`);
    rmdirSync(group);
    return limits;
  } catch {
    return false;
  }
}

const tried = new Map<string, boolean>();

function isMet(name: string, { isMet: attempt }: Need): boolean {
  const before = tried.get(name);
  if (before !== undefined) return before;
  const outcome = attempt();
  tried.set(name, outcome);
  return outcome;
}

/**
 * The reasons why a test file can't run here, by its first comment: `// needs: jail, git`.
 *
 * @throws Error for a name that isn't in the table
 */
export function missingFor(
  source: string,
  isThere: (name: string, need: Need) => boolean = isMet,
): readonly string[] {
  const [, names = ""] = /^\/\/ needs: (.+)$/m.exec(source) ?? [];
  return missing(
    names.split(", ").filter((name) => name !== ""),
    isThere,
  );
}

/**
 * The reasons for those of the needs that this machine lacks.
 *
 * @throws Error for a name that isn't in the table
 */
export function missing(
  names: readonly string[],
  isThere: (name: string, need: Need) => boolean = isMet,
): readonly string[] {
  return names.flatMap((name) => {
    const need = needs[name];
    if (need === undefined)
      throw new Error(`"// needs: ${name}" isn't one of ${Object.keys(needs).join(", ")}`);
    return isThere(name, need) ? [] : [need.reason];
  });
}

/** One skip with its reason in place of a test file that this machine can't run. Nothing of the file is executed. */
export function skipWithoutNeeds(): Plugin {
  return {
    name: "ambit-needs",
    enforce: "pre",
    // Vitest keeps transformed files from run to run, and this machine may get what it lacks.
    configureVitest({ defineCacheKeyGenerator }) {
      defineCacheKeyGenerator(({ id, sourceCode }) => lackOf(id, sourceCode));
    },
    transform(source, id) {
      const lack = lackOf(id, source);
      if (lack === undefined) return undefined;
      const reason = JSON.stringify(`host: ${lack}`);
      const code = `import { it } from "vitest"; it("all of this file", (context) => context.skip(${reason}));`;
      return { code, map: null };
    },
  };
}

/** What this machine lacks for a test file. What a machine must prove, as CI's must, isn't skipped there: it fails. */
function lackOf(id: string, source: string): string | undefined {
  if (!id.includes(".test.ts") || process.env.AMBIT_MUST_PROVE) return undefined;
  const reasons = missingFor(source);
  return reasons.length === 0 ? undefined : reasons.join("; ");
}
