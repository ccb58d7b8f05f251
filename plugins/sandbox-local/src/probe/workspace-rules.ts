import { chmod, link, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@ambit/core/plugin";
import type { LocalConfig } from "../config.js";
import {
  closedBoundary,
  expectThat,
  filesystem,
  type LocalTrial,
  NotProven,
  outcomeOnHost,
  runIn,
  shell,
} from "./trial.js";
import { mountsOf, viewOf } from "./view.js";

/** Prints the name of every attempt that succeeded, then the marker. `$1`: protected, `$2`: in the data folder, `$3`: it. */
const attempts = `
try() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name"; fi; }
put='echo x > "$0"'
try write-protected sh -c "$put" "$1"
try move-protected mv "$1" "$1-away"
try write-readable sh -c "$put" readable/given
try read-denied cat denied/given
try write-denied sh -c "$put" denied/made
try enter-data-folder test -e "$2"
try write-data-folder sh -c "$put" "$3/made"
try write-beside sh -c "$put" beside
try move-beside mv beside beside-away
echo ran`;
const harmless = ["write-beside", "move-beside"];

/** What a jail mounts in its workspace, and what it covers in the paths that it shows. */
export function rulesTrial(
  config: Pick<LocalConfig, "scratchMb" | "protectedPaths">,
  dataFolder: string,
): LocalTrial {
  return {
    shows: ["filesystem.workspace-only", "filesystem.host-hidden"],
    run: async (bench) => {
      const lists = { ...filesystem("workspace"), readable: ["readable"], denied: ["denied"] };
      const requiredPaths = [{ path: dataFolder, what: "The data folder" }];
      const sandbox = await bench.open({ ...closedBoundary, filesystem: lists }, { requiredPaths });
      const [kept] = config.protectedPaths;
      const given = [...(kept === undefined ? [] : [kept]), "readable/given", "denied/given"];
      await sandbox.writeFiles(
        given.map((path) => ({ path: `${sandbox.workspace}/${path}`, content: "given" })),
      );
      const { folder } = sandbox.onHost;
      const argv = [...shell(attempts), "sh", kept ?? "/usr", folder, dataFolder] as const;
      const { stdout } = await runIn(sandbox, argv, { role: "agent" });
      const succeeded = stdout.trim().split("\n");
      expectThat(succeeded.pop() === "ran", "the attempts didn't run to their end, so nothing is proven");
      expectThat(
        (await outcomeOnHost(shell(`[ -e "${folder}" ] && echo seen`), sandbox.evidence.uid)) === "seen\n",
        "the session's user didn't see its folder on this host either, so nothing is proven",
      );
      const odd = [
        ...succeeded.filter((name) => !harmless.includes(name)),
        ...harmless.filter((name) => !succeeded.includes(name)),
      ];
      const isOfHost = (name: string) => name.includes("data-folder");
      const judged = (names: readonly string[], how: string) =>
        names.length === 0
          ? how
          : new NotProven(`with listed paths: unexpected outcome of ${names.join(", ")}`);
      const mounts = mountsOf(await viewOf(sandbox, "tool"), config.scratchMb * 1024 * 1024, true);
      const rules = judged(
        odd.filter((name) => !isOfHost(name)),
        "a protected, a readable and a denied path couldn't be changed, and one beside them could",
      );
      return {
        "filesystem.workspace-only": mounts instanceof NotProven ? mounts : rules,
        "filesystem.host-hidden": judged(
          odd.filter(isOfHost),
          "the data folder, in a path that was shown, was empty",
        ),
      };
    },
  };
}

/** A file of the host with a second name in the workspace. */
export const linkTrial: LocalTrial = {
  shows: ["filesystem.workspace-only"],
  run: async (bench) => {
    const sandbox = await bench.open(closedBoundary);
    const { folder, workspace } = sandbox.onHost;
    // On the workspace's file system, and gone with the session.
    const [decoy, linked] = [join(folder, "linked-decoy"), join(workspace, "linked")];
    const reset = () => writeFile(decoy, "untouched");
    await reset();
    await chmod(decoy, 0o666);
    await link(decoy, linked);
    const change = 'echo changed > "$1"; echo ran';
    await outcomeOnHost([...shell(change), "sh", linked], sandbox.evidence.uid);
    expectThat(
      (await readFile(decoy, "utf8")) === "changed\n",
      "the session's user couldn't change a linked file on this host either, so nothing is proven",
    );
    await reset();
    const argv = [...shell(change), "sh", `${sandbox.workspace}/linked`] as const;
    const refusal = await runIn(sandbox, argv, { role: "agent" }).then(() => undefined, messageOf);
    expectThat(
      (await readFile(decoy, "utf8")) === "untouched",
      "a file of the host was changed through a hard link in the workspace",
    );
    return {
      "filesystem.workspace-only":
        refusal === undefined
          ? "a file with a hard link outside was replaced by a copy"
          : "a workspace with a hard link to a file outside was refused",
    };
  },
};
