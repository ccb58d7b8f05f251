import { randomUUID } from "node:crypto";
import { dirname } from "node:path/posix";
import type { Sandbox } from "@ambit/core/plugin";
import { type Attempts, type Reached, reachedOf } from "../../inside/attempts.js";
import { lookOutside, tryInside } from "../../inside/look.js";
import { expectConclusive, expectThat } from "../../probe/trial.js";
import type { StandardTrial } from "../bench.js";
import { excessMounts, scratchFolders } from "../mounts.js";

export const filesTrial: StandardTrial = {
  shows: ["filesystem.workspace-only", "filesystem.read-only", "filesystem.none", "filesystem.host-hidden"],
  async run(bench) {
    const { decoys, probe } = bench;
    const { hiddenPaths = ["/etc/shadow"], shownPaths = [] } = probe;
    const claimed = (capability: (typeof filesTrial.shows)[number]) => probe.claims.includes(capability);
    const hidden = (name: string): Attempts => ({
      file: { try: "read", path: decoys.file },
      "its folder": { try: "list", path: decoys.folder },
      "the file by ..": { try: "read", path: `${"../".repeat(40)}${decoys.file}` },
      put: { try: "write", path: `${decoys.folder}/${name}` },
    });
    const control = await lookOutside(bench, hidden("control"));
    expectConclusive(
      control.file === decoys.secret && Object.values(control).every((what) => what !== null),
      "a plain process can't read the decoy either",
    );
    const limitsWrites = (["workspace-only", "read-only", "none"] as const).some((name) =>
      claimed(`filesystem.${name}`),
    );
    const system = limitsWrites
      ? ["/etc/put", "/usr/put", "/put", "/dev/put", ...(probe.closedPaths ?? [])]
      : [];
    const outside: Attempts = {
      // Another file, since the control's file belongs to its user.
      ...hidden("put"),
      "the file by a process's root": { try: "read", path: `/proc/1/root${decoys.file}` },
      ...Object.fromEntries(hiddenPaths.flatMap((path) => readsOf(path, shownPaths))),
      ...(limitsWrites ? { "a setting of the kernel": { try: "openToWrite", path: kernelSetting } } : {}),
      ...(limitsWrites ? { "a remount": { try: "remount", path: "/usr" } } : {}),
      ...Object.fromEntries(system.map((path) => [path, { try: "write", path }])),
    };
    const mark = `mark-${randomUUID()}`;
    const marked = await bench.closed();
    await marked.writeFiles([{ path: `${marked.workspace}/${mark}`, content: mark }]);
    const look = async (sandbox: Sandbox, hasWorkspace = true): Promise<Reached> => {
      const { workspace } = sandbox;
      const given = sandbox.writeFiles([{ path: `${workspace}/given`, content: "given" }]);
      // Where there is no workspace, the runner may not be able to write to it either.
      await (hasWorkspace ? given : given.catch(() => undefined));
      const { write, read, list, mounts, ownMark, ...rest } = await tryInside(sandbox, bench, {
        ...outside,
        ...(sandbox === marked
          ? { ownMark: { try: "exists", path: `${workspace}/${mark}` } }
          : { "another session's file": { try: "belowMounts", name: mark } }),
        mounts: { try: "own", file: "mountinfo" },
        write: { try: "write", path: `${workspace}/put` },
        read: { try: "read", path: `${workspace}/given` },
        list: { try: "list", path: workspace },
      });
      expectConclusive(ownMark !== null, "a sandbox's own file isn't there either");
      const { isGvisor } = await bench.kernel();
      expectThat(reachedOf(rest) === "", `reached outside the workspace: ${reachedOf(rest)}`);
      const folders = {
        workspace,
        home: sandbox.home,
        scratch: [...scratchFolders, ...(probe.scratch ?? [])],
        closed: (probe.closedPaths ?? []).map((path) => dirname(path)),
      };
      const hasNoFlags = isGvisor || probe.hasPlainScratch === true;
      const excess = limitsWrites ? excessMounts(mounts ?? "", folders, hasNoFlags) : [];
      expectThat(excess.length === 0, excess.join("; "));
      return { write: write ?? null, read: read ?? null, list: list ?? null };
    };
    const [writable, readable, none] = await Promise.all([
      bench.closed().then((one) => look(one)),
      claimed("filesystem.read-only") ? bench.listed().then((one) => look(one)) : undefined,
      claimed("filesystem.none") ? bench.empty().then((one) => look(one, false)) : undefined,
    ]);
    expectConclusive(
      writable.write !== null && writable.read === "given",
      "the workspace can't be written and read",
    );
    expectThat(
      readable === undefined || (readable.write === null && readable.read === "given"),
      "a read-only workspace can be written, or not read",
    );
    // An empty folder in its place is scratch.
    const isThere =
      none !== undefined && (none.read !== null || none.list?.split(",").includes("given") === true);
    expectThat(!isThere, "the workspace is there although it was to be none");
    const rest = "a file that every user of this host may read, and write beside, wasn't there inside";
    return {
      "filesystem.host-hidden": rest,
      "filesystem.workspace-only": `a write in the workspace arrived, all others failed; ${rest}`,
      "filesystem.read-only": `a file of the workspace was read, and no write succeeded; ${rest}`,
      "filesystem.none": `neither a file nor a list of the workspace was read; ${rest}`,
    };
  },
};

const kernelSetting = "/proc/sys/kernel/core_pattern";

function readsOf(path: string, shownPaths: readonly string[]) {
  const shown = shownPaths.filter((other) => other.startsWith(`${path}/`));
  return [
    [`read ${path}`, { try: "read", path }],
    [`list ${path}`, { try: "list", path, shown }],
  ] as const;
}
