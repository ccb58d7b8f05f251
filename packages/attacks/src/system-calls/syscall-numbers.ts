/** Machines with a table of system call numbers, by Node's names. */
export const seccompArchitectures = ["x64", "arm64"] as const;
export type SeccompArchitecture = (typeof seccompArchitectures)[number];

/** Whether there is a table for this machine (`process.arch`). */
export function isSeccompArchitecture(architecture: string): architecture is SeccompArchitecture {
  return seccompArchitectures.some((one) => one === architecture);
}

/**
 * Numbers of the system calls that the rules name. Sources: arch/x86/entry/syscalls/syscall_64.tbl and, for arm64,
 * include/uapi/asm-generic/unistd.h. A call that a machine lacks has no number there, and no rule.
 */
const both = (number: number): Numbers => ({ x64: number, arm64: number });
const on = (x64: number, arm64: number): Numbers => ({ x64, arm64 });
const onlyX64 = (x64: number): Numbers => ({ x64 });

type Numbers = Partial<Readonly<Record<SeccompArchitecture, number>>>;

export const syscallNumbers = {
  // Files: only calls that can set a mode, or hold up other users of a file.
  open: onlyX64(2),
  openat: on(257, 56),
  openat2: both(437),
  creat: onlyX64(85),
  mknod: onlyX64(133),
  mknodat: on(259, 33),
  chmod: onlyX64(90),
  fchmod: on(91, 52),
  fchmodat: on(268, 53),
  fchmodat2: both(452),
  open_by_handle_at: on(304, 265),
  quotactl: on(179, 60),
  quotactl_fd: both(443),
  swapon: on(167, 224),
  swapoff: on(168, 225),
  acct: on(163, 89),
  fcntl: on(72, 25),
  uselib: onlyX64(134),

  // Mounts and roots, the old interface and the new one.
  mount: on(165, 40),
  umount2: on(166, 39),
  pivot_root: on(155, 41),
  chroot: on(161, 51),
  open_tree: both(428),
  move_mount: both(429),
  fsopen: both(430),
  fsconfig: both(431),
  fsmount: both(432),
  fspick: both(433),
  mount_setattr: both(442),
  open_tree_attr: both(467),

  // Namespaces and processes.
  clone: on(56, 220),
  clone3: both(435),
  unshare: on(272, 97),
  setns: on(308, 268),
  ptrace: on(101, 117),
  process_vm_readv: on(310, 270),
  process_vm_writev: on(311, 271),
  pidfd_getfd: both(438),

  futex: on(202, 98),
  personality: on(135, 92),

  // Terminals and sockets.
  ioctl: on(16, 29),
  vhangup: on(153, 58),
  socket: on(41, 198),
  socketpair: on(53, 199),

  // Interfaces of the kernel that no namespace isolates.
  io_setup: on(206, 0),
  io_uring_setup: both(425),
  io_uring_enter: both(426),
  io_uring_register: both(427),
  add_key: on(248, 217),
  request_key: on(249, 218),
  keyctl: on(250, 219),
  bpf: on(321, 280),
  perf_event_open: on(298, 241),
  userfaultfd: on(323, 282),

  // The host itself.
  kexec_load: on(246, 104),
  kexec_file_load: on(320, 294),
  create_module: onlyX64(174),
  init_module: on(175, 105),
  finit_module: on(313, 273),
  delete_module: on(176, 106),
  reboot: on(169, 142),
  settimeofday: on(164, 170),
  clock_settime: on(227, 112),
  clock_adjtime: on(305, 266),
  adjtimex: on(159, 171),
  sethostname: on(170, 161),
  setdomainname: on(171, 162),
  syslog: on(103, 116),
  kcmp: on(312, 272),
  listmount: both(458),
  mbind: on(237, 235),
  modify_ldt: onlyX64(154),
  move_pages: on(279, 239),
  name_to_handle_at: on(303, 264),
  get_mempolicy: on(239, 236),
  process_madvise: both(440),
  statmount: both(457),
  sysfs: onlyX64(139),
  ustat: onlyX64(136),
  iopl: onlyX64(172),
  ioperm: onlyX64(173),
} as const satisfies Readonly<Record<string, Numbers>>;

export type SyscallName = keyof typeof syscallNumbers;

export const syscallNames: readonly SyscallName[] = Object.keys(syscallNumbers).filter(isSyscallName);

function isSyscallName(name: string): name is SyscallName {
  return Object.hasOwn(syscallNumbers, name);
}

/** The call's number on this machine, or undefined where the machine has no such call. */
export function syscallNumber(name: SyscallName, architecture: SeccompArchitecture): number | undefined {
  const numbers: Numbers = syscallNumbers[name];
  return numbers[architecture];
}
