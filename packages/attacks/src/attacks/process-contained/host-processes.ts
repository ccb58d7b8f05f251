import type { Stage } from "../attack.js";
import { programAttack } from "../program-attack.js";

const target = async ({ decoyProcess }: Stage) => {
  const { pid, nonce } = await decoyProcess();
  return { pid, mark: nonce };
};

/** What the decoy process reports that was done to it. */
const harm = async ({ decoyProcess }: Stage) => {
  const decoy = await decoyProcess();
  const signals = await decoy.signals();
  return signals.length > 0 ? `the decoy process was sent ${signals.join(", ")}` : undefined;
};
const disturbance = async ({ decoyProcess }: Stage) => (await decoyProcess()).disturbed();

/** Of `nice`. */
const lowestPriority = 19;

const numbers = `
N = {
    "x86_64": {"pidfd_open": 434, "pidfd_send_signal": 424, "tgkill": 234, "ptrace": 101, "process_vm_readv": 310,
               "process_vm_writev": 311, "pidfd_getfd": 438},
    "aarch64": {"pidfd_open": 434, "pidfd_send_signal": 424, "tgkill": 131, "ptrace": 117, "process_vm_readv": 270,
                "process_vm_writev": 271, "pidfd_getfd": 438},
}[os.uname().machine]
`;

const regions = `
def mapped():
    found = []
    for line in content("/proc/%d/maps" % P["pid"]).decode().split("\\n"):
        parts = line.split()
        if len(parts) >= 2 and parts[1].startswith("rw"):
            start, end = (int(part, 16) for part in parts[0].split("-"))
            found.append((start, min(end - start, 8 << 20)))
    return found
def vectors(buffer, start, size):
    return struct.pack("QQ", ctypes.addressof(buffer), size), struct.pack("QQ", start, size)
`;

/** A process of the host, of the same user if possible. */
export const hostProcessAttacks = [
  programAttack({
    id: "process.contained/see",
    title: "find a process of the host by its command line",
    parameters: target,
    program: `
def see():
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        if path.split("/")[2] == str(os.getpid()):
            continue
        try:
            if P["mark"].encode() in content(path):
                return "seen at " + path
        except OSError:
            continue
    return None
# Its own parameters contain the mark, and so may the process that started it, but no other.
attempt("command lines", lambda: (see() or "").startswith("seen at /proc/%d/" % P["pid"]) and see())`,
  }),
  programAttack({
    id: "process.contained/signal",
    title: "signal a process of the host",
    parameters: target,
    aftermath: harm,
    program: `${numbers}
# # The number is that of the kit's own decoy. Inside, it may be unused, or belong to a process of the run. That process
# doesn't have the decoy's mark, and is skipped.
def ours():
    try:
        return P["mark"].encode() in content("/proc/%d/cmdline" % P["pid"])
    except OSError:
        return not os.path.exists("/proc/%d" % P["pid"])
def send(how):
    if not ours():
        raise OSError(errno.ESRCH, "another process")
    how()
attempt("kill", lambda: send(lambda: os.kill(P["pid"], signal.SIGUSR1)))
attempt("tgkill", lambda: send(lambda: syscall(N["tgkill"], P["pid"], P["pid"], int(signal.SIGUSR2))))
attempt("pidfd", lambda: send(lambda: syscall(N["pidfd_send_signal"], syscall(N["pidfd_open"], P["pid"], 0),
                                              int(signal.SIGUSR1), 0, 0)))
time.sleep(0.1)  # The decoy says what it got.`,
  }),
  programAttack({
    id: "process.contained/priority",
    title: "change the priority of a process of the host",
    parameters: async ({ decoyProcess }) => {
      const { pid, nice } = await decoyProcess();
      // Lower than it is, which needs no privileges.
      return nice >= lowestPriority
        ? "the kit runs at the lowest priority itself"
        : { pid, nice: Math.min(lowestPriority, nice + 5) };
    },
    aftermath: disturbance,
    program: `attempt("setpriority", lambda: os.setpriority(os.PRIO_PROCESS, P["pid"], P["nice"]))`,
  }),
  programAttack({
    id: "process.contained/memory",
    stoppedBy: ["pid namespace", "user namespace"],
    title: "read the memory and environment of a process of the host",
    parameters: target,
    program: `${regions}
def by_file():
    found = set()
    with open("/proc/%d/mem" % P["pid"], "rb", buffering=0) as memory:
        for start, size in mapped():
            try:
                memory.seek(start)
                found.update(leaks(memory.read(size)).split())
            except (OSError, ValueError, OverflowError):
                continue
    return " ".join(found)
attempt("environ", lambda: leaks(content("/proc/%d/environ" % P["pid"])))
attempt("mem", by_file)`,
  }),
  programAttack({
    id: "process.contained/memory-call",
    stoppedBy: ["pid namespace", "user namespace", "system call filter"],
    title: "copy the memory of a process of the host",
    parameters: target,
    program: `${numbers}${regions}
def read():
    found, failure = set(), None
    for start, size in mapped():
        buffer = ctypes.create_string_buffer(size)
        local, remote = vectors(buffer, start, size)
        try:
            syscall(N["process_vm_readv"], P["pid"], local, 1, remote, 1, 0)
            found.update(leaks(buffer.raw).split())
        except OSError as error:
            failure = error
    if failure is not None and not found:
        raise failure
    return " ".join(found)
attempt("process_vm_readv", read)`,
  }),
  programAttack({
    id: "process.contained/memory-change",
    stoppedBy: ["pid namespace", "user namespace", "system call filter"],
    title: "change the memory of a process of the host",
    parameters: target,
    // One byte of the decoy, set to its present value.
    program: `${numbers}${regions}
def written():
    for start, size in mapped():
        with open("/proc/%d/mem" % P["pid"], "rb", buffering=0) as memory:
            memory.seek(start)
            buffer = ctypes.create_string_buffer(memory.read(1), 1)
        local, remote = vectors(buffer, start, 1)
        return "%d byte was written" % syscall(N["process_vm_writev"], P["pid"], local, 1, remote, 1, 0)
attempt("process_vm_writev", written)`,
  }),
  programAttack({
    id: "process.contained/descriptor",
    stoppedBy: ["pid namespace", "user namespace", "system call filter"],
    title: "take a descriptor from a process of the host",
    parameters: target,
    program: `${numbers}
def taken():
    if P["mark"].encode() not in content("/proc/%d/cmdline" % P["pid"]):
        raise OSError(errno.ESRCH, "another process")
    descriptor = syscall(N["pidfd_getfd"], syscall(N["pidfd_open"], P["pid"], 0), 2, 0)
    os.close(descriptor)
    return "its standard error was taken"
attempt("pidfd_getfd", taken)`,
  }),
  programAttack({
    id: "process.contained/trace",
    stoppedBy: ["pid namespace", "user namespace", "system call filter"],
    title: "attach to a process of the host as a debugger",
    parameters: target,
    program: `${numbers}
def attach():
    if P["mark"].encode() not in content("/proc/%d/cmdline" % P["pid"]):
        raise OSError(errno.ESRCH, "another process")
    syscall(N["ptrace"], 16, P["pid"], 0, 0)
    os.waitpid(P["pid"], 0x40000000)
    syscall(N["ptrace"], 17, P["pid"], 0, 0)
    return "attached and let go"
attempt("ptrace", attach)`,
  }),
  programAttack({
    id: "process.contained/shared-segment",
    stoppedBy: ["ipc namespace"],
    title: "attach a System V memory segment of the host",
    parameters: async ({ decoyProcess }) => {
      const { segment } = await decoyProcess();
      return segment === undefined ? "no System V shared memory" : { key: segment };
    },
    program: `
def attach():
    identity = check(libc.shmget(P["key"], 0, 0))
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(identity, None, 0)
    return leaks(ctypes.string_at(address, 4096))
attempt("shmget", attach)`,
  }),
  programAttack({
    id: "process.contained/message-queue",
    stoppedBy: ["ipc namespace"],
    title: "open a POSIX message queue of the host",
    parameters: async ({ decoyProcess }) => {
      const { queue } = await decoyProcess();
      return queue === undefined ? "no POSIX message queues" : { queue };
    },
    program: `
def receive():
    library = ctypes.CDLL("librt.so.1", use_errno=True)
    descriptor = check(library.mq_open(P["queue"].encode(), 2 | os.O_NONBLOCK, 0, None))
    buffer = ctypes.create_string_buffer(65536)
    library.mq_receive.restype = ctypes.c_ssize_t
    size = check(library.mq_receive(descriptor, buffer, ctypes.c_size_t(65536), None))
    check(library.mq_send(descriptor, buffer, ctypes.c_size_t(size), 0))
    return leaks(buffer.raw[:size])
attempt("mq_open", receive)`,
  }),
  programAttack({
    id: "process.contained/keyring",
    stoppedBy: ["system call filter"],
    title: "read a key of the host's keyrings",
    parameters: async ({ decoyProcess }) => {
      const { key } = await decoyProcess();
      return key === undefined ? "no keyrings" : { key };
    },
    program: `
def read():
    number = {"x86_64": 250, "aarch64": 219}[os.uname().machine]
    buffer = ctypes.create_string_buffer(4096)
    syscall(number, 11, P["key"], buffer, 4096, 0)
    return leaks(buffer.raw)
attempt("keyctl", read)`,
  }),
] as const;
