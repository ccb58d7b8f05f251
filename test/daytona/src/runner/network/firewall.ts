import { gatewayAddress, gatewayServicePort, httpProxyPort, tlsProxyPort, worldRange } from "../addresses.js";
import type { Network, Setup } from "../messages.js";

/** Rules for every sandbox: only what its own chain accepts passes, and nothing is forwarded. */
export const base = (leaks: Setup["leaks"]) => `
table inet loopback {
  map nat_of { type ifname : verdict; }
  map input_of { type ifname : verdict; }
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    iifname vmap @nat_of
  }
  chain input {
    type filter hook input priority filter; policy drop;
    iifname "lo" accept
    meta nfproto ipv6 ${leaks.includes("ipv6") ? "accept" : "drop"}
    ct state established,related accept
    tcp dport { ${httpProxyPort}, ${tlsProxyPort} } ct status dnat accept
    tcp dport { ${httpProxyPort}, ${tlsProxyPort} } drop
    iifname vmap @input_of
  }
  chain forward {
    type filter hook forward priority filter; policy drop;
  }
}
`;

export const linkName = (index: number) => `sandbox${index}`;

export interface Rules {
  readonly index: number;
  readonly network: Network;
  /** Has placeholders to replace, so all of its web traffic goes through the proxy. */
  readonly substitutes: boolean;
  readonly essentialAddresses: readonly string[];
  readonly openResolver: Setup["openResolver"];
  readonly leaks: Setup["leaks"];
}

const set = (entries: readonly string[]) => `{ ${entries.join(", ")} }`;

function natRules({ network, substitutes, essentialAddresses }: Rules): string[] {
  if (network.blockAll) return [];
  if (network.domains === null && !substitutes) return [];
  const redirect = [
    `meta nfproto ipv4 tcp dport 80 redirect to :${httpProxyPort}`,
    `meta nfproto ipv4 tcp dport 443 redirect to :${tlsProxyPort}`,
  ];
  if (substitutes) {
    // Limited by address only: only allowed traffic goes through the proxy.
    if (network.domains === null && network.allowList !== null) {
      const reachable = [...network.allowList, ...essentialAddresses];
      return reachable.length === 0 ? [] : redirect.map((rule) => `ip daddr ${set(reachable)} ${rule}`);
    }
    return redirect;
  }
  // Traffic that is allowed by its address needs no name.
  const direct = [...(network.allowList ?? []), ...essentialAddresses];
  return direct.length === 0 ? redirect : [`ip daddr ${set(direct)} accept`, ...redirect];
}

function inputRules({ index, network, essentialAddresses, openResolver, leaks }: Rules): string[] {
  const limited = network.blockAll || network.allowList !== null || network.domains !== null;
  const byName = !network.blockAll && network.domains !== null;
  const resolver = `ip daddr ${gatewayAddress(index)} meta l4proto { tcp, udp } th dport 53 accept`;
  const rules: string[] = [];
  if (leaks.includes("datagrams")) rules.push(`ip daddr ${worldRange} udp dport 53 accept`);
  if (leaks.includes("gateway"))
    rules.push(`ip daddr ${gatewayAddress(index)} tcp dport ${gatewayServicePort} accept`);
  if (!limited || byName || openResolver || essentialAddresses.length > 0) rules.push(resolver);
  if (essentialAddresses.length > 0) rules.push(`ip daddr ${set(essentialAddresses)} accept`);
  if (!limited) rules.push(`ip daddr ${worldRange} accept`);
  else if (!network.blockAll && network.allowList !== null && network.allowList.length > 0)
    rules.push(`ip daddr ${set(network.allowList)} accept`);
  return rules;
}

/** A sandbox's own chains, replacing those it had, as one transaction. */
export function rulesOf(rules: Rules): string {
  const link = linkName(rules.index);
  return `
add chain inet loopback ${link}_nat
add chain inet loopback ${link}_input
flush chain inet loopback ${link}_nat
flush chain inet loopback ${link}_input
${natRules(rules)
  .map((rule) => `add rule inet loopback ${link}_nat ${rule}`)
  .join("\n")}
${[...inputRules(rules), "drop"].map((rule) => `add rule inet loopback ${link}_input ${rule}`).join("\n")}
add element inet loopback nat_of { "${link}" : jump ${link}_nat }
add element inet loopback input_of { "${link}" : jump ${link}_input }
`;
}

export function removalOf(index: number): string {
  const link = linkName(index);
  return `
delete element inet loopback nat_of { "${link}" : jump ${link}_nat }
delete element inet loopback input_of { "${link}" : jump ${link}_input }
flush chain inet loopback ${link}_nat
flush chain inet loopback ${link}_input
delete chain inet loopback ${link}_nat
delete chain inet loopback ${link}_input
`;
}
