import type { Boundary, HiddenCredential, Hiding } from "@ambit/core/plugin";
import { readHost } from "@ambit/core/plugin";
import { decideBeforeLookup } from "../decide.js";

/**
 * Whether the egress proxy can keep this credential outside: its hosts are names that the boundary lets the sandbox
 * reach. The answer of `SandboxBackend.hides` for every backend whose only way out is this proxy. Pure.
 */
export function proxyHides({ value, hosts }: HiddenCredential, { network }: Boundary): Hiding {
  if (!/^[\x20-\x7e]{8,4096}$/.test(value) || value.trim() !== value) {
    const fix = "use a key of 8 to 4,096 printable ASCII characters";
    return { reason: "it can't be sent in a header, or it is too short to be recognised", fix };
  }
  for (const entry of hosts) {
    const [, name = entry, digits = "443"] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
    const port = Number(digits);
    const reading = readHost(name);
    if (!reading.ok || reading.kind === "address") {
      return {
        reason: `${name} is not a host name, and certificates are issued for names`,
        fix: "use the server's name",
      };
    }
    const where = `${reading.host}:${port}`;
    const fix = `list "${where}" in sandboxPermission.network.allowlist`;
    if (network.mode === "on") {
      return {
        reason: "an unrestricted network has no proxy between the sandbox and the credential's hosts",
        fix,
      };
    }
    const decision = decideBeforeLookup({ host: reading.host, kind: "name", port }, network);
    if (!decision.allowed) return { reason: `${where} can't be reached: ${decision.reason}`, fix };
  }
  return hosts.length > 0 || { reason: "it has no host", fix: "name its hosts" };
}
