import type { Claim } from "../../claims.js";
import {
  errnoOf,
  type SeccompArchitecture,
  type SyscallName,
  syscallNumber,
  x32Bit,
} from "../../seccomp/index.js";
import type { NumberedCall } from "./program.js";

/** A system call that the filter refuses, with arguments that the kernel also refuses, but with another error. */
export interface CallAttempt extends NumberedCall {
  /** The call, and the part of its arguments that the filter tests: `clone 0x20000`. */
  readonly name: string;
  /** The capabilities that don't hold if the call isn't refused. */
  readonly capabilities: readonly Claim[];
  /** The filter's result: -errno. */
  readonly answer: number;
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

const socketVariants = refusedFamilies.map((family) => [family, invalidSocketType, 0n, nowhere]);
const mode = (index: number, before: readonly bigint[] = []) =>
  setIdBits.map((bit) => [...before, ...Array<bigint>(index - before.length).fill(nowhere), bit]);

/** Every call that a rule names, grouped by the claims that depend on its refusal. None of them has an effect. */
const groups: readonly (readonly [readonly Claim[], readonly Row[]])[] = [
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
    ],
  ],
  [
    ["process.contained"],
    [
      ["ioctl", [none, 0x5412n], [none, 0x541cn]],
      ["vhangup", []],
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
    ],
  ],
];

/** A call that the filter allows must reach the kernel: a jail that refuses everything proves nothing. */
export const allowedCall = {
  name: "socket 1",
  call: "socket",
  arguments: [1n, invalidSocketType],
} as const;

/**
 * The attempts of a machine, in the groups that are reported together. @throws RangeError for one that no rule refuses.
 */
export function callAttempts(architecture: SeccompArchitecture): readonly CallAttempt[] {
  const known = groups.flatMap(([capabilities, rows]) =>
    rows.flatMap(([call, ...variants]) => {
      const number = syscallNumber(call, architecture);
      if (number === undefined) return [];
      return variants.map((given) => ({
        name: [call, ...given.map((value) => (value < 0 ? String(value) : `0x${value.toString(16)}`))].join(
          " ",
        ),
        number,
        arguments: given,
        capabilities,
        answer: refusalOf(call, given),
      }));
    }),
  );
  return architecture === "x64" ? [...known, x32Attempt] : known;
}

/** Calls with 32-bit pointers have separate numbers, which no rule names; `getpid` represents them all. */
const x32Attempt: CallAttempt = {
  name: "getpid, with 32-bit pointers",
  number: 39 + x32Bit.number,
  arguments: [],
  capabilities: everyClaimOn(groups),
  answer: -x32Bit.errno,
};

/** What a call of another architecture would bypass. */
export const claimsOnEveryRule = everyClaimOn(groups);

function everyClaimOn(all: typeof groups): readonly Claim[] {
  return [...new Set(all.flatMap(([capabilities]) => capabilities))];
}

function refusalOf(call: SyscallName, given: readonly bigint[]): number {
  const errno = errnoOf(call, given);
  if (errno === undefined) throw new RangeError(`No rule refuses ${call} with ${given.join(", ")}`);
  return -errno;
}
