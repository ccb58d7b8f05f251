import type { Capability } from "@ambit/core/plugin";
import {
  type NumberedCall,
  numberOf,
  type SeccompArchitecture,
  type SyscallName,
  syscallNumber,
} from "./calls.js";

/**
 * A system call that may bypass what a sandbox is made of, with arguments that the kernel refuses: it has no effect. A
 * filter refuses it with another error than the kernel.
 */
export interface CallAttempt extends NumberedCall {
  /** The call, and its arguments: `clone 0x20000`. */
  readonly name: string;
  readonly call: SyscallName;
  /** The capabilities that don't hold if the call isn't refused. */
  readonly capabilities: readonly Capability[];
}

type Row = readonly [call: SyscallName, ...variants: (readonly bigint[])[]];

/** No file, and no memory: what the kernel checks first is invalid. */
const none = -1n;
const nowhere = 1n;
const here = -100n; // AT_FDCWD

const invalidSocketType = 15n;
const refusedFamilies = [17n, 29n, 38n, 40n, 44n]; // packet, CAN, crypto, vsock, XDP
const setIdBits = [0o4000n, 0o2000n];
const createsFile = [0o100n, 0o20000000n];
const namespaceFlags = [0x20000n, 0x2000000n, 0x4000000n, 0x8000000n, 0x10000000n, 0x20000000n, 0x40000000n];
const newTimeNamespace = 0x80n;
/** CLONE_THREAD without the flags it needs, and a flag that `unshare` doesn't have. */
const [invalidForClone, invalidForUnshare] = [0x10000n, 0x1n];
const invalidFlags = 0x7fff_ffffn;
/** FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI, also private, and the first with the real-time clock. */
const requeueOperations = [11n, 12n, 139n, 140n, 267n, 395n];
/** F_SETLEASE and F_SETDELEG. */
const leases = [1024n, 1040n];
/** WHOLE_SECONDS: without a meaning, and no other changes its process less. */
const obsoletePersonality = 0x200_0000n;

const socketVariants = refusedFamilies.map((family) => [family, invalidSocketType, 0n, nowhere]);
const mode = (index: number, before: readonly bigint[] = []) =>
  setIdBits.map((bit) => [...before, ...Array<bigint>(index - before.length).fill(nowhere), bit]);

/** Grouped by the claims that depend on their refusal. None of them has an effect. */
const groups: readonly (readonly [readonly Capability[], readonly Row[]])[] = [
  [
    ["network.deny", "network.allow-cidr", "network.allow-host"],
    [
      ["io_uring_setup", [1n, nowhere]],
      ["io_uring_enter", [none]],
      ["io_uring_register", [none]],
      ["socket", ...socketVariants],
      ["socketpair", ...socketVariants],
    ],
  ],
  [
    ["filesystem.workspace-only"],
    [
      ["chmod", ...mode(1)],
      ["fchmod", ...mode(1, [none])],
      ["creat", ...mode(1)],
      ["mknod", ...mode(1)],
      ["fchmodat", ...mode(2, [here])],
      ["fchmodat2", ...mode(2, [here])],
      ["mknodat", ...mode(2, [here])],
      ["open", ...createsFile.flatMap((flag) => mode(2, [nowhere, flag]))],
      ["openat", ...createsFile.flatMap((flag) => mode(3, [here, nowhere, flag]))],
      ["openat2", [none]],
    ],
  ],
  [
    ["process.contained", "environment.per-tool"],
    [
      ["ptrace", [9999n]],
      ["process_vm_readv", [0n, 0n, 0n, 0n, 0n, invalidFlags]],
      ["process_vm_writev", [0n, 0n, 0n, 0n, 0n, invalidFlags]],
      ["pidfd_getfd", [none, 0n, invalidFlags]],
    ],
  ],
  [
    ["process.contained", "filesystem.host-hidden"],
    [
      ["clone", ...namespaceFlags.map((flag) => [flag | invalidForClone])],
      ["clone3", [0n, 0n]],
      ["unshare", ...[...namespaceFlags, newTimeNamespace].map((flag) => [flag | invalidForUnshare])],
      ["setns", [none, 0n]],
      ["mount", [0n, 0n, nowhere]],
      ["umount2", [nowhere, invalidFlags]],
      ["pivot_root", [nowhere, nowhere]],
      ["chroot", [nowhere]],
      ["open_tree", [none, nowhere, invalidFlags]],
      ["move_mount", [none, nowhere, none, nowhere, invalidFlags]],
      ["fsopen", [nowhere, invalidFlags]],
      ["fsconfig", [none]],
      ["fsmount", [none, invalidFlags]],
      ["fspick", [none, nowhere, invalidFlags]],
      ["mount_setattr", [none, nowhere, invalidFlags]],
      ["open_tree_attr", [none, nowhere, invalidFlags, nowhere, 8n]],
      ["open_by_handle_at", [none, nowhere]],
      ["name_to_handle_at", [none, nowhere, nowhere, nowhere, invalidFlags]],
      ["statmount", [nowhere]],
      ["listmount", [nowhere, nowhere, 0n, invalidFlags]],
      ["ustat", [none, nowhere]],
    ],
  ],
  [
    ["process.contained"],
    [
      ["ioctl", [none, 0x5412n], [none, 0x541cn]],
      ["fcntl", ...leases.map((command) => [none, command])],
      ["vhangup", []],
      ["io_setup", [nowhere, nowhere]],
      ["add_key", [nowhere, nowhere]],
      ["request_key", [nowhere, nowhere]],
      ["keyctl", [9999n]],
      ["bpf", [0n, nowhere, 1n << 20n]],
      ["perf_event_open", [nowhere, 0n, none, none, invalidFlags]],
      ["userfaultfd", [0x41n]],
      ["syslog", [9999n]],
      ["iopl", [4n]],
      ["ioperm", [0n, 0n]],
      ["settimeofday", [nowhere]],
      ["clock_settime", [9999n, nowhere]],
      ["clock_adjtime", [9999n, nowhere]],
      ["adjtimex", [nowhere]],
      ["quotactl", [0x80000700n]],
      ["quotactl_fd", [none]],
      ["uselib", [nowhere]],
      ["create_module", [nowhere]],
      ["kexec_load", [nowhere, invalidFlags, nowhere, invalidFlags]],
      ["kexec_file_load", [none, none, 0n, nowhere, invalidFlags]],
      ["init_module", [nowhere, 1n, nowhere]],
      ["finit_module", [none, nowhere, invalidFlags]],
      ["delete_module", [nowhere]],
      ["reboot", [0n]],
      ["sethostname", [nowhere, none]],
      ["setdomainname", [nowhere, none]],
      ["swapon", [nowhere]],
      ["swapoff", [nowhere]],
      ["acct", [nowhere]],
      ["futex", ...requeueOperations.map((operation) => [nowhere, operation])],
      ["personality", [obsoletePersonality]],
      ["kcmp", [none, none, invalidFlags]],
      ["process_madvise", [none, nowhere, 0n, 0n, invalidFlags]],
      ["mbind", [0n, 0n, invalidFlags, 0n, 0n, invalidFlags]],
      ["get_mempolicy", [0n, 0n, 0n, 0n, invalidFlags]],
      ["move_pages", [0n, 0n, 0n, 0n, 0n, invalidFlags]],
      ["modify_ldt", [1n, nowhere, 0n]],
      ["sysfs", [9999n]],
    ],
  ],
];

/** A call that every filter allows must reach the kernel: a sandbox that refuses everything proves nothing. */
export const allowedCall = (architecture: SeccompArchitecture) =>
  ({
    name: "socket 1",
    number: numberOf("socket", architecture),
    arguments: [1n, invalidSocketType],
  }) as const satisfies NumberedCall & { readonly name: string };

/** The attempts of a machine, in the groups that are reported together. */
export function callAttempts(architecture: SeccompArchitecture): readonly CallAttempt[] {
  return groups.flatMap(([capabilities, rows]) =>
    rows.flatMap(([call, ...variants]) => {
      const number = syscallNumber(call, architecture);
      if (number === undefined) return [];
      return variants.map((given) => ({
        name: nameOf(call, given),
        call,
        number,
        arguments: given,
        capabilities,
      }));
    }),
  );
}

const nameOf = (call: SyscallName, given: readonly bigint[]) =>
  [call, ...given.map((value) => (value < 0 ? String(value) : `0x${value.toString(16)}`))].join(" ");
