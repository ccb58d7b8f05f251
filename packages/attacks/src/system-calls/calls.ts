/** The system calls of Linux by their numbers, those that programs need, and programs that do nothing but make some. */

import { readFileSync } from "node:fs";
import { constants } from "node:os";

/**
 * The system calls that programs need: those that Docker's default profile allows, without the ones that only container
 * managers use, and without `io_setup`: one process can take all that the host has of it (`fs.aio-max-nr`). Name, number on x64,
 * number on arm64 (`-`: the machine has no such call). Sources: arch/x86/entry/syscalls/syscall_64.tbl and scripts/syscall.tbl.
 * A newer kernel's calls aren't in it until they are added.
 */
const table = `
accept 43 202, accept4 288 242, access 21 -, alarm 37 -, arch_prctl 158 -, bind 49 200, brk 12 214, cachestat 451 451,
capget 125 90, capset 126 91, chdir 80 49, chmod 90 -, chown 92 -, clock_getres 229 114, clock_gettime 228 113,
clock_nanosleep 230 115, close 3 57, close_range 436 436, connect 42 203, copy_file_range 326 285, creat 85 -,
dup 32 23, dup2 33 -, dup3 292 24, epoll_create 213 -, epoll_create1 291 20, epoll_ctl 233 21, epoll_pwait 281 22,
epoll_pwait2 441 441, epoll_wait 232 -, eventfd 284 -, eventfd2 290 19, execve 59 221, execveat 322 281, exit 60 93,
exit_group 231 94, faccessat 269 48, faccessat2 439 439, fadvise64 221 223, fallocate 285 47, fchdir 81 50,
fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, fchown 93 55, fchownat 260 54, fcntl 72 25, fdatasync 75 83,
fgetxattr 193 10, flistxattr 196 13, flock 73 32, fork 57 -, fremovexattr 199 16, fsetxattr 190 7, fstat 5 80,
fstatfs 138 44, fsync 74 82, ftruncate 77 46, futex 202 98, futex_requeue 456 456, futex_wait 455 455,
futex_waitv 449 449, futex_wake 454 454, futimesat 261 -, get_robust_list 274 100, getcpu 309 168, getcwd 79 17,
getdents 78 -, getdents64 217 61, getegid 108 177, geteuid 107 175, getgid 104 176, getgroups 115 158,
getitimer 36 102, getpeername 52 205, getpgid 121 155, getpgrp 111 -, getpid 39 172, getppid 110 173,
getpriority 140 141, getrandom 318 278, getresgid 120 150, getresuid 118 148, getrlimit 97 163, getrusage 98 165,
getsid 124 156, getsockname 51 204, getsockopt 55 209, gettid 186 178, gettimeofday 96 169, getuid 102 174,
getxattr 191 8, getxattrat 464 464, inotify_add_watch 254 27, inotify_init 253 -, inotify_init1 294 26,
inotify_rm_watch 255 28, io_cancel 210 3, io_destroy 207 1, io_getevents 208 4, io_pgetevents 333 292,
io_submit 209 2, ioprio_get 252 31, ioprio_set 251 30, kill 62 129, landlock_add_rule 445 445,
landlock_create_ruleset 444 444, landlock_restrict_self 446 446, lchown 94 -, lgetxattr 192 9, link 86 -,
linkat 265 37, listen 50 201, listxattr 194 11, listxattrat 465 465, llistxattr 195 12, lremovexattr 198 15,
lseek 8 62, lsetxattr 189 6, lstat 6 -, madvise 28 233, map_shadow_stack 453 453, membarrier 324 283,
memfd_create 319 279, memfd_secret 447 447, mincore 27 232, mkdir 83 -, mkdirat 258 34, mknod 133 -, mknodat 259 33,
mlock 149 228, mlock2 325 284, mlockall 151 230, mmap 9 222, mprotect 10 226, mq_getsetattr 245 185,
mq_notify 244 184, mq_open 240 180, mq_timedreceive 243 183, mq_timedsend 242 182, mq_unlink 241 181, mremap 25 216,
mseal 462 462, msgctl 71 187, msgget 68 186, msgrcv 70 188, msgsnd 69 189, msync 26 227, munlock 150 229,
munlockall 152 231, munmap 11 215, nanosleep 35 101, newfstatat 262 79, open 2 -, openat 257 56, pause 34 -,
pidfd_open 434 434, pidfd_send_signal 424 424, pipe 22 -, pipe2 293 59, pkey_alloc 330 289, pkey_free 331 290,
pkey_mprotect 329 288, poll 7 -, ppoll 271 73, prctl 157 167, pread64 17 67, preadv 295 69, preadv2 327 286,
prlimit64 302 261, process_mrelease 448 448, pselect6 270 72, pwrite64 18 68, pwritev 296 70, pwritev2 328 287,
read 0 63, readahead 187 213, readlink 89 -, readlinkat 267 78, readv 19 65, recvfrom 45 207, recvmmsg 299 243,
recvmsg 47 212, remap_file_pages 216 234, removexattr 197 14, removexattrat 466 466, rename 82 -, renameat 264 38,
renameat2 316 276, restart_syscall 219 128, rmdir 84 -, rseq 334 293, rt_sigaction 13 134, rt_sigpending 127 136,
rt_sigprocmask 14 135, rt_sigqueueinfo 129 138, rt_sigreturn 15 139, rt_sigsuspend 130 133, rt_sigtimedwait 128 137,
rt_tgsigqueueinfo 297 240, sched_get_priority_max 146 125, sched_get_priority_min 147 126, sched_getaffinity 204 123,
sched_getattr 315 275, sched_getparam 143 121, sched_getscheduler 145 120, sched_rr_get_interval 148 127,
sched_setaffinity 203 122, sched_setattr 314 274, sched_setparam 142 118, sched_setscheduler 144 119,
sched_yield 24 124, seccomp 317 277, select 23 -, semctl 66 191, semget 64 190, semop 65 193, semtimedop 220 192,
sendfile 40 71, sendmmsg 307 269, sendmsg 46 211, sendto 44 206, set_robust_list 273 99, set_tid_address 218 96,
setfsgid 123 152, setfsuid 122 151, setgid 106 144, setgroups 116 159, setitimer 38 103, setpgid 109 154,
setpriority 141 140, setregid 114 143, setresgid 119 149, setresuid 117 147, setreuid 113 145, setrlimit 160 164,
setsid 112 157, setsockopt 54 208, setuid 105 146, setxattr 188 5, setxattrat 463 463, shmat 30 196, shmctl 31 195,
shmdt 67 197, shmget 29 194, shutdown 48 210, sigaltstack 131 132, signalfd 282 -, signalfd4 289 74, splice 275 76,
stat 4 -, statfs 137 43, statx 332 291, symlink 88 -, symlinkat 266 36, sync 162 81, sync_file_range 277 84,
syncfs 306 267, sysinfo 99 179, tee 276 77, tgkill 234 131, time 201 -, timer_create 222 107, timer_delete 226 111,
timer_getoverrun 225 109, timer_gettime 224 108, timer_settime 223 110, timerfd_create 283 85, timerfd_gettime 287 87,
timerfd_settime 286 86, times 100 153, tkill 200 130, truncate 76 45, umask 95 166, uname 63 160, unlink 87 -,
unlinkat 263 35, uretprobe 335 -, utime 132 -, utimensat 280 88, utimes 235 -, vfork 58 -, vmsplice 278 75,
wait4 61 260, waitid 247 95, write 1 64, writev 20 66`;

/** A system call that sandboxes allow, unless a filter tests its arguments. */
export interface AllowedCall {
  readonly name: string;
  readonly numbers: Partial<Readonly<Record<SeccompArchitecture, number>>>;
}

export const allowedCalls: readonly AllowedCall[] = table.split(",").map((row) => {
  const [name = "", x64, arm64] = row.trim().split(" ");
  const on = (architecture: SeccompArchitecture, number: string | undefined) =>
    number === undefined || number === "-" ? {} : { [architecture]: Number(number) };
  return { name, numbers: { ...on("x64", x64), ...on("arm64", arm64) } };
});

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

/** The number on this machine of a call that programs need, or that the rules name. @throws Error when none is known */
export function numberOf(name: string, architecture: SeccompArchitecture): number {
  const allowed = allowedCalls.find((call) => call.name === name)?.numbers[architecture];
  const number = allowed ?? (isSyscallName(name) ? syscallNumber(name, architecture) : undefined);
  if (number === undefined) throw new Error(`no number of the system call ${name} is known`);
  return number;
}

/** The folder of the compiled programs. */
const programsFolder = new URL("../../native/", import.meta.url);

/** One system call: its number as the machine has it, and up to six arguments. */
export interface NumberedCall {
  readonly number: number;
  readonly arguments: readonly bigint[];
}

/**
 * A static program that makes the calls, one after the other, and writes their results: `native/system-calls.c`. It needs no
 * interpreter and no library.
 */
export function systemCallProgram(architecture: SeccompArchitecture, calls: readonly NumberedCall[]): Buffer {
  const rows = calls.map(({ number, arguments: values }) => {
    const row = Buffer.alloc(7 * 8);
    row.writeBigUInt64LE(BigInt(number), 0);
    values.forEach((value, index) => {
      row.writeBigUInt64LE(BigInt.asUintN(64, value), 8 * (index + 1));
    });
    return row;
  });
  const end = Buffer.alloc(8, 0xff);
  return withTable(readFileSync(new URL(`system-calls-${architecture}`, programsFolder)), [...rows, end]);
}

/** A program that makes a system call of another architecture: `native/foreign-call.c`. Undefined on a machine without one. */
export function foreignCallProgram(architecture: SeccompArchitecture): Buffer | undefined {
  return architecture === "x64"
    ? readFileSync(new URL(`foreign-call-${architecture}`, programsFolder))
    : undefined;
}

/** The results of a program's calls: 0 and above worked, below is -errno. */
export function resultsIn(output: Uint8Array): readonly number[] {
  const bytes = Buffer.from(output);
  return Array.from({ length: Math.floor(bytes.length / 8) }, (_, index) =>
    Number(bytes.readBigInt64LE(index * 8)),
  );
}

/** A result in words: the error's name, or `success`. Without one, `no answer`. */
export function wordFor(result: number | undefined): string {
  if (result === undefined) return "no answer";
  if (result >= 0) return "success";
  return Object.entries(constants.errno).find(([, errno]) => errno === -result)?.[0] ?? String(result);
}

/** Where a program's file is in its memory (scripts/native/program.ld). */
const baseAddress = 0x400000n;
/** Where the file's header says how long its one segment is: in the file, and in memory. */
const segmentSizeOffsets = [0x60, 0x68];

/** Where the table behind a compiled program is in its memory. Pure. */
export const tableAddress = (program: Buffer): bigint => baseAddress + BigInt(program.length);

/** A compiled program of `scripts/native` with a table behind it, which is loaded with it. Pure. */
export function withTable(program: Buffer, table: readonly Buffer[]): Buffer {
  const whole = Buffer.concat([program, ...table]);
  for (const offset of segmentSizeOffsets) whole.writeBigUInt64LE(BigInt(whole.length), offset);
  return whole;
}
