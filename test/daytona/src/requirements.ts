import { spawnSync } from "node:child_process";

/** What has to work, and what it is for. Each is done, not looked up. */
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

/**
 * Why this machine can't run a loopback Daytona, for a test's skip (`host: ${reason}`); undefined where it can. It
 * takes root, and the Debian packages bubblewrap, iproute2 and nftables.
 */
export function unavailableReason(): string | undefined {
  if (process.getuid?.() !== 0) return "a loopback Daytona needs root";
  for (const { does, run } of trials) {
    const [program, ...args] = run;
    const { status, error, stderr } = spawnSync(program, args, { encoding: "utf8" });
    if (status !== 0) return `a loopback Daytona needs ${does}: ${error?.message ?? stderr.trim()}`;
  }
  return undefined;
}
