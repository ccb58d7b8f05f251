import { join } from "node:path";
import { outcomeOnHost } from "./on-host.js";
import { expectThat, type LocalTrial, readOnlyBoundary, shell } from "./trial.js";

/** Prints the name of every attempt that succeeded, then the marker. `$1`: workspace, `$2`: home, `$3`: channel. */
const attempts = `
try() { name=$1; shift; if "$@" >/dev/null 2>&1; then echo "$name"; fi; }
try workspace ls "$1"
try home ls "$2"
try channel test -w "$3"
echo ran`;

/** What of a session another user of this host reaches, such as that of another session. */
export const otherUsers: LocalTrial = {
  shows: ["filesystem.host-hidden", "network.deny"],
  run: async (bench) => {
    const [sandbox, other] = await Promise.all([bench.closed(), bench.shared(readOnlyBoundary)]);
    if (process.getuid?.() !== 0) {
      const how = "its files and its channel are those of the runner's user, as all sessions are";
      return { "filesystem.host-hidden": how, "network.deny": how };
    }
    const { folder, workspace, home } = sandbox.onHost;
    const argv = [...shell(attempts), "sh", workspace, home, join(folder, "channel.sock")] as const;
    expectThat(
      (await outcomeOnHost(argv, sandbox.evidence.uid)) === "workspace\nhome\nchannel\nran\n",
      "the session's own user didn't reach its files and channel either, so nothing is proven",
    );
    const reached = (await outcomeOnHost(argv, other.evidence.uid)).trim().split("\n").slice(0, -1);
    expectThat(reached.length === 0, `another session's user reached its ${reached.join(", ")}`);
    return {
      "filesystem.host-hidden": "another session's user on this host couldn't list its workspace and home",
      "network.deny": "another session's user on this host couldn't connect to its channel",
    };
  },
};
