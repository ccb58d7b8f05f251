/** A way to keep TCP ports of this machine to root. */
export interface Firewall {
  readonly name: string;
  /** One after the other; all must succeed. */
  commands(ports: readonly number[]): readonly Command[];
}

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  /** Standard input. */
  readonly input?: string;
}

/**
 * In the order in which they are tried. Each refuses a packet to a port over the loopback device, whatever address of
 * this machine it is for, unless a socket of root's sends it: one without an owner is refused too. What comes in from
 * elsewhere, as the platform does, is left alone.
 */
export const firewalls: readonly Firewall[] = [
  { name: "nftables", commands: (ports) => [nft(ports, "reject with tcp reset")] },
  // Not every kernel has the module that refuses.
  { name: "nftables (drop)", commands: (ports) => [nft(ports, "drop")] },
  {
    name: "iptables",
    commands: (ports) => ["iptables", "ip6tables"].flatMap((program) => iptables(program, ports)),
  },
];

function nft(ports: readonly number[], verdict: string): Command {
  const rule = `oifname "lo" tcp dport { ${ports.join(", ")} }`;
  const input = `add table inet ambit_supervisor
flush table inet ambit_supervisor
add chain inet ambit_supervisor output { type filter hook output priority filter; policy accept; }
add rule inet ambit_supervisor output ${rule} meta skuid 0 accept
add rule inet ambit_supervisor output ${rule} ${verdict}
`;
  return { program: "nft", args: ["-f", "-"], input };
}

function iptables(program: string, ports: readonly number[]): readonly Command[] {
  const match = ["-o", "lo", "-p", "tcp", "-m", "multiport", "--dports", ports.join(",")];
  const owner = ["-m", "owner", "!", "--uid-owner", "0"];
  return [
    {
      program,
      args: ["-w", "-I", "OUTPUT", "1", ...match, ...owner, "-j", "REJECT", "--reject-with", "tcp-reset"],
    },
  ];
}
