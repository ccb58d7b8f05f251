import type { DialTarget } from "@ambit/backend-kit";
import { SandboxFailed } from "@ambit/core/plugin";

const maxNamed = 4;

const wordsOf = (targets: readonly DialTarget[]) =>
  targets
    .map(({ host, port, protocol }) => {
      const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
      return protocol === "udp" ? `${address} over UDP` : address;
    })
    .join(", ");

export const policyFix =
  'use a network that enforces policies also towards its nodes and over IPv6 (Cilium with its host firewall, Calico with DefaultEndpointToHostAction=Drop), or nodes with user namespaces (hostUsers: "require")';

/** A pod that policies should close reaches something. */
export class NetworkOpen extends SandboxFailed {
  readonly reason: string;
  readonly fix = policyFix;

  constructor(open: readonly DialTarget[], settleMs: number) {
    const others = open.length > maxNamed ? ` and ${open.length - maxNamed} more` : "";
    const reason = `a pod still reaches ${wordsOf(open.slice(0, maxNamed))}${others} after ${settleMs} ms, so the cluster's network doesn't enforce the namespace's NetworkPolicy`;
    super(`The pod's network can't be closed: ${reason}`);
    this.reason = reason;
    this.message = `${this.message}: ${this.fix}`;
  }
}
