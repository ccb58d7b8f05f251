import { spawnSync } from "node:child_process";

/** Commands that must work, and their purpose. Each is tried. */
const trials = [
  { does: "namespaces (unshare, of util-linux)", run: ["unshare", "--mount", "--net", "true"] },
  {
    does: "containers (bwrap, of bubblewrap)",
    run: ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "true"],
  },
  {
    does: "links (ip, of iproute2)",
    run: ["unshare", "--net", "ip", "link", "add", "trial", "type", "veth"],
  },
  { does: "rules (nft, of nftables)", run: ["unshare", "--net", "nft", "add", "table", "inet", "trial"] },
  {
    does: "other users (setpriv, of util-linux)",
    run: ["setpriv", "--reuid", "65534", "--clear-groups", "true"],
  },
] as const;

/** If it is set, as in CI, a machine that can't run the loopback is an error instead of a skip. */
const demand = "AMBIT_MUST_RUN_LOOPBACK_DAYTONA";

/**
 * Why this machine can't run a loopback Daytona, for a test's skip (`host: ${reason}`); undefined if it can. It needs root
 * and the Debian packages bubblewrap, iproute2 and nftables.
 *
 * @throws Error instead of returning a reason, if `AMBIT_MUST_RUN_LOOPBACK_DAYTONA` is 1.
 */
export function unavailableReason(): string | undefined {
  const reason = findReason();
  if (reason !== undefined && process.env[demand] === "1") throw new Error(`${demand}: ${reason}`);
  return reason;
}

function findReason(): string | undefined {
  if (process.getuid?.() !== 0) return "a loopback Daytona needs root";
  for (const { does, run } of trials) {
    const [program, ...args] = run;
    const { status, error, stderr } = spawnSync(program, args, { encoding: "utf8" });
    if (status !== 0) return `a loopback Daytona needs ${does}: ${error?.message ?? stderr.trim()}`;
  }
  return undefined;
}
