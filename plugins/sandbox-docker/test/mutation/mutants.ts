import type { Capability } from "@ambit/core/plugin";
import type { ContainerCreateOptions } from "dockerode";

type Order = ContainerCreateOptions;
type Host = NonNullable<Order["HostConfig"]>;

/** One mechanism of a container's order that is taken out. */
export interface Mutant {
  readonly name: string;
  change(order: Order): Order;
  /** What the container then doesn't enforce. The probe must notice for at least one of them. */
  readonly breaks: readonly Capability[];
}

const host =
  (change: (asked: Host) => Partial<Host>) =>
  (order: Order): Order => {
    const asked = order.HostConfig ?? {};
    return { ...order, HostConfig: { ...asked, ...change(asked) } };
  };

/** With capabilities that containers have unless they are dropped, or that would let a process out. */
const kept = (name: string, ...rights: readonly string[]): Mutant => ({
  name,
  change: host(({ CapAdd }) => ({ CapAdd: [...(CapAdd ?? []), ...rights] })),
  breaks: ["process.contained"],
});

const withoutSecurity = (prefix: string, ...instead: readonly string[]) =>
  host(({ SecurityOpt }) => ({
    SecurityOpt: [...(SecurityOpt ?? []).filter((option: string) => !option.startsWith(prefix)), ...instead],
  }));

const files = [
  "filesystem.workspace-only",
  "filesystem.read-only",
  "filesystem.none",
  "filesystem.host-hidden",
] as const;

/** Tmpfs mounts with one option less, or with another value. */
const scratch = (from: string | RegExp, to = "") =>
  host(({ Tmpfs = {} }) => ({
    Tmpfs: Object.fromEntries(
      Object.entries(Tmpfs).map(([path, options]) => [path, options.replace(from, to)]),
    ),
  }));

/** Each mechanism of a container's order. */
export const mutants: readonly Mutant[] = [
  { name: "`CapDrop: ALL`", change: host(() => ({ CapDrop: [] })), breaks: ["process.contained"] },
  kept("dropped capabilities of the network", "NET_RAW", "NET_ADMIN", "NET_BIND_SERVICE"),
  kept("dropped capabilities over other processes", "SYS_PTRACE", "SYS_NICE"),
  kept("dropped capabilities of the system", "SYS_ADMIN", "SYS_CHROOT", "SYS_MODULE"),
  kept("dropped capabilities over devices and files", "MKNOD", "SETFCAP", "DAC_READ_SEARCH"),
  kept("the other dropped capabilities", "AUDIT_WRITE", "SETPCAP", "IPC_OWNER"),
  {
    name: "`no-new-privileges`",
    change: withoutSecurity("no-new-privileges"),
    breaks: ["process.contained"],
  },
  {
    name: "the system call filter",
    change: withoutSecurity("seccomp=", "seccomp=unconfined"),
    breaks: ["network.deny", "network.allow-cidr", "network.allow-host", "process.contained"],
  },
  {
    name: "the system call filter's own profile (the engine's applies)",
    change: withoutSecurity("seccomp="),
    breaks: ["process.contained"],
  },
  { name: "covered tables of the kernel", change: host(() => ({ MaskedPaths: [] })), breaks: files },
  { name: "read-only settings of the kernel", change: host(() => ({ ReadonlyPaths: [] })), breaks: files },
  {
    name: "the network namespace",
    change: host(({ NetworkMode }) => ({ NetworkMode: NetworkMode === "none" ? "host" : NetworkMode })),
    breaks: ["network.deny", "network.allow-cidr", "network.allow-host", "inbound.ports"],
  },
  { name: "the PID namespace", change: host(() => ({ PidMode: "host" })), breaks: ["process.contained"] },
  { name: "the IPC namespace", change: host(() => ({ IpcMode: "host" })), breaks: ["process.contained"] },
  { name: "the read-only root", change: host(() => ({ ReadonlyRootfs: false })), breaks: files },
  {
    name: "read-only mounts of the runner's files",
    change: host(({ Mounts = [] }) => ({
      Mounts: Mounts.map((one) => (one.Type === "bind" ? { ...one, ReadOnly: false } : one)),
    })),
    breaks: files,
  },
  { name: "`nosuid` of scratch", change: scratch("nosuid", "suid"), breaks: files },
  { name: "`nodev` of scratch", change: scratch("nodev", "dev"), breaks: files },
  {
    name: "the size of the workspace",
    change: scratch(/(mode=755,size=)\d+m/, "$164g"),
    breaks: ["resources.disk"],
  },
  {
    name: "root as the guest daemon's user, who starts processes as others",
    change: (order) => ({ ...order, User: "61000:61000" }),
    breaks: ["environment.per-tool"],
  },
  {
    name: "the limit of memory",
    change: host(() => ({ Memory: 0, MemorySwap: 0 })),
    breaks: ["resources.memory"],
  },
  { name: "the limit of processes", change: host(() => ({ PidsLimit: 0 })), breaks: ["resources.processes"] },
  { name: "the limit of processors", change: host(() => ({ NanoCpus: 0 })), breaks: ["resources.cpu"] },
];
