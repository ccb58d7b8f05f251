import { constants } from "node:os";
import type { SyscallName } from "@ambit/attacks/system-calls";

/** A test of the low 32 bits of one argument. The kernel reads no more of the tested arguments. */
export type ArgumentTest =
  | { readonly argument: number; readonly anyBitOf: number }
  | { readonly argument: number; readonly isOneOf: readonly number[] }
  | { readonly argument: number; readonly isNoneOf: readonly number[] };

/** The calls fail with `errno`: always, or when every test of `when` holds. The first rule that applies decides. */
export interface SeccompRule {
  readonly calls: readonly SyscallName[];
  readonly errno: number;
  readonly when?: readonly ArgumentTest[];
}

const { EPERM, EACCES, ENOSYS, EAFNOSUPPORT } = constants.errno;

/** S_ISUID | S_ISGID (linux/stat.h). */
const SET_ID_BITS = 0o6000;
/**
 * O_CREAT | __O_TMPFILE: open() reads its mode only with one of them; otherwise the register has an arbitrary value.
 */
const CREATES_A_FILE = 0o100 | 0o20000000;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET (linux/sched.h). */
const NAMESPACE_FLAGS =
  0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000;
/** CLONE_NEWTIME. In clone() these bits are part of the exit signal, and the flag doesn't exist. */
const NEW_TIME_NAMESPACE = 0x80;

const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;

/**
 * AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: the first three end in the jail's network namespace, the last is read-only.
 */
const SOCKET_FAMILIES = [1, 2, 10, 16];

/** PER_LINUX, PER_LINUX32, the same with UNAME26, and the query. */
const PERSONALITIES = [0x0, 0x8, 0x20000, 0x20008, 0xffffffff];
/**
 * FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI, with FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME: their code in the
 * kernel had several holes that any process could use, and no C library uses them any more.
 */
const PI_REQUEUE = [11, 12, 139, 140, 267, 395];

/**
 * F_SETLEASE and F_SETDELEG: on a file that it can only read, but whose owner it is, a process holds up the host's next programs that
 * open it.
 */
const LEASES = [1024, 1040];

/**
 * no_new_privs doesn't stop the sandbox from leaving a set-id file in the workspace for the host to run. A guest daemon
 * that sets a folder's set-group-ID bit needs a filter without these rules.
 */
export const setIdRules: readonly SeccompRule[] = [
  {
    calls: ["chmod", "fchmod", "creat", "mknod"],
    errno: EPERM,
    when: [{ argument: 1, anyBitOf: SET_ID_BITS }],
  },
  {
    calls: ["fchmodat", "fchmodat2", "mknodat"],
    errno: EPERM,
    when: [{ argument: 2, anyBitOf: SET_ID_BITS }],
  },
  {
    calls: ["open"],
    errno: EPERM,
    when: [
      { argument: 1, anyBitOf: CREATES_A_FILE },
      { argument: 2, anyBitOf: SET_ID_BITS },
    ],
  },
  {
    calls: ["openat"],
    errno: EPERM,
    when: [
      { argument: 2, anyBitOf: CREATES_A_FILE },
      { argument: 3, anyBitOf: SET_ID_BITS },
    ],
  },
];

/**
 * What a sandboxed process may not ask of the kernel, and the error it gets. Other calls that aren't in the list of
 * allowed ones don't exist for it (ENOSYS), so that programs do without them as on an older kernel.
 */
export const seccompRules: readonly SeccompRule[] = [
  {
    // ENOSYS lets libraries fall back: clone3 and openat2 hide their flags behind a pointer that a filter can't read.
    calls: ["io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2"],
    errno: ENOSYS,
  },
  { calls: ["clone"], errno: EPERM, when: [{ argument: 0, anyBitOf: NAMESPACE_FLAGS }] },
  {
    calls: ["unshare"],
    errno: EPERM,
    when: [{ argument: 0, anyBitOf: NAMESPACE_FLAGS | NEW_TIME_NAMESPACE }],
  },
  { calls: ["personality"], errno: EPERM, when: [{ argument: 0, isNoneOf: PERSONALITIES }] },
  { calls: ["futex"], errno: ENOSYS, when: [{ argument: 1, isOneOf: PI_REQUEUE }] },
  { calls: ["fcntl"], errno: EPERM, when: [{ argument: 1, isOneOf: LEASES }] },
  {
    // A byte pushed into the terminal that the runner shares is a command typed by its operator.
    calls: ["ioctl"],
    errno: EPERM,
    when: [{ argument: 1, isOneOf: [TIOCSTI, TIOCLINUX] }],
  },
  {
    // vsock reaches the hypervisor from inside any network namespace.
    calls: ["socket", "socketpair"],
    errno: EAFNOSUPPORT,
    when: [{ argument: 0, isNoneOf: SOCKET_FAMILIES }],
  },
  ...setIdRules,
  {
    // Without this a payload attaches to the sandbox's own init and stops it.
    calls: ["ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd"],
    errno: EPERM,
  },
  { calls: ["add_key", "request_key", "keyctl"], errno: EPERM },
  {
    calls: ["mount", "umount2", "chroot", "setns", "open_tree", "fsconfig", "mount_setattr"],
    errno: EPERM,
  },
  { calls: ["open_tree_attr", "open_by_handle_at"], errno: EPERM },
  { calls: ["bpf", "perf_event_open", "userfaultfd", "iopl", "ioperm"], errno: EPERM },
  {
    calls: ["settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "quotactl", "quotactl_fd"],
    errno: EPERM,
  },
  { calls: ["create_module", "uselib"], errno: EPERM },
  // Nothing without capabilities may make the calls below, and the kernel answers EPERM before it checks an argument,
  // or ENOSYS if it was built without them. Another error means the same to a program, and shows a probe that the
  // filter refused.
  { calls: ["pivot_root", "move_mount", "fsopen", "fsmount", "fspick"], errno: ENOSYS },
  {
    calls: [
      ...(["kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"] as const),
      ...([
        "reboot",
        "sethostname",
        "setdomainname",
        "swapon",
        "swapoff",
        "acct",
        "syslog",
        "vhangup",
      ] as const),
    ],
    errno: EACCES,
  },
];
