import { posix } from "node:path";
import { type Sandbox, SandboxFailed } from "@ambit/core/plugin";
import { type Attempts, reachedOf } from "../../inside/attempts.js";
import { lookOutside, tryInside } from "../../inside/look.js";
import { expectConclusive, expectThat } from "../../probe/trial.js";
import type { StandardBench, StandardTrial } from "../bench.js";
import { isReadOnlyMount, mountAt } from "../mounts.js";

const shows = [
  "filesystem.workspace-only",
  "filesystem.read-only",
  "filesystem.none",
  "filesystem.host-hidden",
] as const;

/** The runner's files that a sandbox sees, such as an agent, can't be changed in it. Neither can the kernel's. */
export const shownFilesTrial: StandardTrial = {
  shows,
  async run(bench) {
    const { shown } = bench.decoys;
    const control = await lookOutside(bench, writesIn(shown, "control"));
    expectConclusive(
      Object.values(control).every((what) => what !== null),
      "a plain process can't write there either",
    );
    const sandbox = await openShowing(bench);
    if (sandbox instanceof SandboxFailed)
      return all(`no file of the runner can be shown: ${sandbox.message}`);
    const inside = sandbox.image === undefined ? shown : posix.join(sandbox.image.copyRoot, shown);
    const { file, mounts, ...written } = await tryInside(sandbox, bench, {
      ...writesIn(inside, "put"),
      file: { try: "read", path: posix.join(inside, "shown") },
      mounts: { try: "own", file: "mountinfo" },
    });
    expectConclusive(file === "shown", "a file that the sandbox was to show can't be read inside");
    expectThat(reachedOf(written) === "", `a file of the runner can be changed: ${reachedOf(written)}`);
    const { isGvisor } = await bench.kernel();
    const faults = isGvisor ? [] : await openTables(bench, sandbox, mounts ?? "");
    expectThat(faults.length === 0, faults.join("; "));
    return all("a file of the runner was read inside, and neither it nor its folder could be changed");
  },
};

const all = (how: string) => Object.fromEntries(shows.map((capability) => [capability, how]));

const writesIn = (folder: string, name: string): Attempts => ({
  change: { try: "openToWrite", path: posix.join(folder, "shown") },
  put: { try: "write", path: posix.join(folder, name) },
});

/** Without it, no agent of the runner is shown either. */
async function openShowing(
  bench: StandardBench,
): Promise<(Sandbox & { readonly image?: Sandbox["image"] }) | SandboxFailed> {
  const requiredPaths = [{ path: bench.decoys.shown, what: "a file of the probe" }];
  try {
    return await bench.open({ ...bench.network, ...bench.files }, { requiredPaths });
  } catch (error) {
    if (error instanceof SandboxFailed) return error;
    throw error;
  }
}

/** Tables and settings of the kernel that aren't covered, or not read-only, although the backend says so. */
async function openTables(
  bench: StandardBench,
  sandbox: Sandbox,
  mountinfo: string,
): Promise<readonly string[]> {
  const { covered = [], readOnly = [] } = bench.probe.kernelPaths ?? {};
  if (covered.length + readOnly.length === 0) return [];
  const attempts = [...covered, ...readOnly].map((path) => [path, { try: "exists", path }] as const);
  const seen = await tryInside(sandbox, bench, Object.fromEntries(attempts));
  const isThere = (path: string) => (seen[path] ?? null) !== null;
  return [
    ...covered
      .filter(
        (path) => isThere(path) && ["proc", "sysfs", undefined].includes(mountAt(mountinfo, path)?.type),
      )
      .map((path) => `nothing covers ${path}`),
    ...readOnly
      .filter((path) => isThere(path) && !isReadOnlyMount(mountinfo, path))
      .map((path) => `${path} isn't read-only`),
  ];
}
