import { tryInside } from "../../inside/look.js";
import { expectThat } from "../../probe/trial.js";
import type { StandardTrial } from "../bench.js";

/** By bit (linux/capability.h). */
const capabilityNames =
  `CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE
NET_BIND_SERVICE NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT
SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP
MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE`.split(
    /\s+/,
  );

/** What a process of a run may have in the kernel's eyes. */
interface Privileges {
  /** Linux capabilities that it could gain, without `CAP_`. */
  readonly bounding: readonly string[];
}

/**
 * Privileges in a process's status (`/proc/self/status`) that it shouldn't have, in words. Pure.
 *
 * @param isOwnKernel gVisor reports neither its filter nor `NoNewPrivs`, and heeds no set-user-ID bit.
 */
export function excessIn(status: string, { bounding }: Privileges, isOwnKernel: boolean): readonly string[] {
  const field = (name: string) => new RegExp(`^${name}:\\s*(\\S+)`, "m").exec(status)?.[1];
  const held = ["CapInh", "CapPrm", "CapEff", "CapAmb"].flatMap((name) => {
    const names = namesIn(field(name) ?? "0");
    return names.length === 0 ? [] : [`it has capabilities (${name}: ${names.join(", ")})`];
  });
  const more = namesIn(field("CapBnd") ?? "0").filter((name) => !bounding.includes(name));
  return [
    ...held,
    ...(field("CapEff") === undefined ? ["its capabilities aren't shown"] : []),
    ...(more.length === 0 ? [] : [`capabilities aren't dropped (CapBnd: ${more.join(", ")})`]),
    ...(isOwnKernel || field("NoNewPrivs") === "1"
      ? []
      : ["a set-user-ID program gives it privileges (NoNewPrivs)"]),
    ...(isOwnKernel || field("Seccomp") === "2" ? [] : ["no filter of system calls holds for it (Seccomp)"]),
  ];
}

function namesIn(hexadecimal: string): readonly string[] {
  const bits = BigInt(`0x${hexadecimal}`);
  return Array.from({ length: 64 }, (_, bit) => bit)
    .filter((bit) => ((bits >> BigInt(bit)) & 1n) === 1n)
    .map((bit) => capabilityNames[bit] ?? `capability ${bit}`);
}

/** What the kernel says of a tool's process and of the agent's: with privileges, no namespace holds. */
export const privilegesTrial: StandardTrial = {
  shows: ["process.contained"],
  async run(bench) {
    const sandbox = await bench.closed();
    const { isGvisor } = await bench.kernel();
    const bounding = bench.probe.bounding ?? [];
    const attempts = { status: { try: "own", file: "status" } } as const;
    const look = (role: "tool" | "agent") => tryInside(sandbox, bench, attempts, { role });
    const [tool, agent] = await Promise.all([look("tool"), look("agent")]);
    for (const [whose, { status }] of [
      ["a tool's", tool],
      ["an agent's", agent],
    ] as const) {
      const excess = excessIn(status ?? "", { bounding }, isGvisor);
      expectThat(excess.length === 0, `of ${whose} process: ${excess.join("; ")}`);
    }
    return {
      "process.contained":
        "the kernel reports no capability of a tool's or an agent's process, no way to gain one, and a filter of its system calls",
    };
  },
};
