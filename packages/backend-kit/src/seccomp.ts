import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * The system calls that a sandbox allows: only those that programs need. Stricter than Docker's default in the families
 * of sockets; it lets `mount` through to the kernel's own check, because the engine remounts /proc at the start, and no
 * process of a run has the capability for it. Names by linux/unistd.h; a kernel that lacks one ignores it.
 */
const allowed = `
accept accept4 access alarm arch_prctl bind brk cachestat capget capset chdir chmod chown clock_getres clock_getres_time64
clock_gettime clock_gettime64 clock_nanosleep clock_nanosleep_time64 close close_range connect copy_file_range creat dup
dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 execve execveat exit
exit_group faccessat faccessat2 fadvise64 fadvise64_64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl
fcntl64 fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs fstatfs64 fsync
ftruncate ftruncate64 futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake futimesat get_robust_list getcpu
getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid
getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid
getxattr getxattrat inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents
io_pgetevents io_pgetevents_time64 io_setup io_submit ioprio_get ioprio_set kill landlock_add_rule
landlock_create_ruleset landlock_restrict_self lchown lgetxattr link linkat listen listxattr listxattrat llistxattr
_llseek lremovexattr lseek lsetxattr lstat lstat64 madvise map_shadow_stack membarrier memfd_create memfd_secret mincore
mkdir mkdirat mknod mknodat mlock mlock2 mlockall mmap mmap2 mount mprotect mq_getsetattr mq_notify mq_open
mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink mremap mseal msgctl msgget msgrcv
msgsnd msync munlock munlockall munmap nanosleep newfstatat open openat openat2 pause pidfd_open pidfd_send_signal pipe
pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64 prctl pread64 preadv preadv2 prlimit64 process_mrelease
pselect6 pselect6_time64 ptrace pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv recv recvfrom recvmmsg
recvmmsg_time64 recvmsg remap_file_pages removexattr removexattrat rename renameat renameat2 restart_syscall rmdir rseq
rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
rt_sigtimedwait_time64 rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr
sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr
sched_setparam sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop semtimedop_time64 send
sendfile sendfile64 sendmmsg sendmsg sendto set_robust_list set_tid_address setfsgid setfsuid setgid setgroups setitimer
setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr setxattrat shmat
shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 splice stat stat64 statfs statfs64 statx symlink symlinkat
sync sync_file_range sync_file_range2 syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun
timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64
timerfd_settime timerfd_settime64 times tkill truncate truncate64 umask uname unlink unlinkat utime utimensat
utimensat_time64 utimes vfork vmsplice wait4 waitid waitpid write writev`;

/** CLONE_NEWTIME is part of the exit signal here; the others are CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}. */
const namespaceFlags =
  0x0002_0000 + 0x0200_0000 + 0x0400_0000 + 0x0800_0000 + 0x1000_0000 + 0x2000_0000 + 0x4000_0000;

/** AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: all end in the container's network. vsock doesn't. */
const socketFamilies = [1, 2, 10, 16];
/** Personalities: Linux, and those that programs need; the last one only queries. */
const personalities = [0x0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];
const [TIOCSTI, TIOCLINUX, ENOSYS] = [0x5412, 0x541c, 38];

const allow = "SCMP_ACT_ALLOW";
const equal = (index: number, value: number) => ({ index, value, op: "SCMP_CMP_EQ" });

/** In the engine's format, for `--security-opt seccomp=`: calls of other architectures are refused. */
export const seccompProfile = JSON.stringify({
  defaultAction: "SCMP_ACT_ERRNO",
  syscalls: [
    { names: allowed.trim().split(/\s+/), action: allow },
    ...socketFamilies.map((family) => ({ names: ["socket"], action: allow, args: [equal(0, family)] })),
    { names: ["socketpair"], action: allow, args: [equal(0, 1)] },
    ...personalities.map((one) => ({ names: ["personality"], action: allow, args: [equal(0, one)] })),
    {
      names: ["clone"],
      action: allow,
      args: [{ index: 0, value: namespaceFlags, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }],
    },
    // Its flags are behind a pointer, which a filter can't read; libraries fall back to clone.
    { names: ["clone3"], action: "SCMP_ACT_ERRNO", errnoRet: ENOSYS },
    // A byte pushed into a terminal is a command typed by its user.
    {
      names: ["ioctl"],
      action: allow,
      args: [
        { index: 1, value: TIOCSTI, op: "SCMP_CMP_NE" },
        { index: 1, value: TIOCLINUX, op: "SCMP_CMP_NE" },
      ],
    },
  ],
});

/**
 * The same as a file, for engines that take a path. @returns its path. @param folder that only the runner's user writes
 * to.
 */
export async function writeSeccompProfile(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, "seccomp.json");
  // Atomically: another runner's engine may read it at the same time.
  const fresh = `${path}.${process.pid}`;
  await writeFile(fresh, seccompProfile, { mode: 0o644 });
  await rename(fresh, path);
  return path;
}
