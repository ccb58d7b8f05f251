import type { Sandbox } from "@ambit/core/plugin";
import { expectConclusive, expectThat } from "../../probe/trial.js";
import type { Trial } from "../bench.js";
import { type Attempts, lookInside, lookOutside, type Reached, reachedOf } from "../look.js";

export const filesTrial: Trial = {
  shows: ["filesystem.workspace-only", "filesystem.read-only", "filesystem.none", "filesystem.host-hidden"],
  async run(bench) {
    const { decoys, probe } = bench;
    const claimed = (capability: (typeof filesTrial.shows)[number]) => probe.claims.includes(capability);
    const hidden = (name: string): Attempts => ({
      file: { try: "read", path: decoys.file },
      put: { try: "write", path: `${decoys.folder}/${name}` },
    });
    const control = await lookOutside(bench, hidden("control"));
    expectConclusive(
      control.file === decoys.secret && control.put !== null,
      "a plain process can't read the decoy either",
    );
    const limitsWrites = (["workspace-only", "read-only", "none"] as const).some((name) =>
      claimed(`filesystem.${name}`),
    );
    const system = limitsWrites ? ["/etc/put", "/usr/put", "/put", ...(probe.closedPaths ?? [])] : [];
    const outside: Attempts = {
      // Another file, since the control's file belongs to its user.
      ...hidden("put"),
      shadow: { try: "read", path: "/etc/shadow" },
      ...Object.fromEntries(system.map((path) => [path, { try: "write", path }])),
    };
    const look = async (sandbox: Sandbox): Promise<Reached> => {
      const { workspace } = sandbox;
      await sandbox.writeFiles([{ path: `${workspace}/given`, content: "given" }]);
      const { write, read, list, ...rest } = await lookInside(sandbox, bench, {
        ...outside,
        write: { try: "write", path: `${workspace}/put` },
        read: { try: "read", path: `${workspace}/given` },
        list: { try: "list", path: workspace },
      });
      expectThat(reachedOf(rest) === "", `reached outside the workspace: ${reachedOf(rest)}`);
      return { write: write ?? null, read: read ?? null, list: list ?? null };
    };
    const [writable, readable, none] = await Promise.all([
      bench.closed().then(look),
      claimed("filesystem.read-only") ? bench.listed().then(look) : undefined,
      claimed("filesystem.none") ? bench.empty().then(look) : undefined,
    ]);
    expectConclusive(
      writable.write !== null && writable.read === "given",
      "the workspace can't be written and read",
    );
    expectThat(
      readable === undefined || (readable.write === null && readable.read === "given"),
      "a read-only workspace can be written, or not read",
    );
    expectThat(
      none === undefined || reachedOf(none) === "",
      "the workspace is there although it was to be none",
    );
    const rest = "a file that every user of this host may read, and write beside, wasn't there inside";
    return {
      "filesystem.host-hidden": rest,
      "filesystem.workspace-only": `a write in the workspace arrived, all others failed; ${rest}`,
      "filesystem.read-only": `a file of the workspace was read, and no write succeeded; ${rest}`,
      "filesystem.none": `neither a file nor a list of the workspace was read; ${rest}`,
    };
  },
};
