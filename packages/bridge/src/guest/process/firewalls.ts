/** A way to restrict TCP ports of this machine to root. */
export interface Firewall {
  readonly name: string;
  /** Run in order; all must succeed. */
  commands(ports: readonly number[]): readonly FirewallCommand[];
}

export interface FirewallCommand {
  readonly program: string;
  readonly args: readonly string[];
  /** Standard input. */
  readonly input?: string;
}

/**
 * In the order in which they are tried. Each refuses a packet to a port over the loopback device, for any address of
 * this machine, unless a socket of root sends it; one without an owner is refused too. Packets from
 * elsewhere, such as the platform's, aren't affected.
 */
export const firewalls: readonly Firewall[] = [
  { name: "nftables", commands: (ports) => [nft(ports, "reject with tcp reset")] },
  // Not every kernel has the module for rejecting.
  { name: "nftables (drop)", commands: (ports) => [nft(ports, "drop")] },
  {
    name: "iptables",
    commands: (ports) => ["iptables", "ip6tables"].flatMap((program) => iptables(program, ports)),
  },
];

function nft(ports: readonly number[], verdict: string): FirewallCommand {
  const rule = `oifname "lo" tcp dport { ${ports.join(", ")} }`;
  const input = `add table inet ambit_supervisor
flush table inet ambit_supervisor
add chain inet ambit_supervisor output { type filter hook output priority filter; policy accept; }
add rule inet ambit_supervisor output ${rule} meta skuid 0 accept
add rule inet ambit_supervisor output ${rule} ${verdict}
`;
  return { program: "nft", args: ["-f", "-"], input };
}

function iptables(program: string, ports: readonly number[]): readonly FirewallCommand[] {
  const match = ["-o", "lo", "-p", "tcp", "-m", "multiport", "--dports", ports.join(",")];
  const owner = ["-m", "owner", "!", "--uid-owner", "0"];
  return [
    {
      program,
      args: ["-w", "-I", "OUTPUT", "1", ...match, ...owner, "-j", "REJECT", "--reject-with", "tcp-reset"],
    },
  ];
}
