import { endProcessesWith, freshNonce, processesWith } from "../decoys/nonce.js";
import { commandOf, runProgram, textOf, waitForLine } from "../programs/run-program.js";
import { type Attack, type AttackOutcome, blocked, notRun, reached, type Stage } from "./attack.js";
import { outcomeOf, programAttack } from "./program-attack.js";

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
const hostProcessAttacks = [
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

export const sessionAttacks = [
  anotherSessionsProcess(),
  programAttack({
    id: "process.contained/own-user-namespace",
    stoppedBy: ["system call filter", "refusal of nested user namespaces"],
    title: "become privileged in a new user namespace",
    needs: "unprivileged user namespaces",
    program: `
def unshare():
    check(libc.unshare(0x10000000))
    status = content("/proc/self/status").decode()
    capabilities = re.search(r"CapEff:\\s+(\\w+)", status).group(1)
    return int(capabilities, 16) and "every privilege over what it makes (%s)" % capabilities
def cloned(name):
    number = {"x86_64": {"clone": 56, "clone3": 435}, "aarch64": {"clone": 220, "clone3": 435}}[os.uname().machine][name]
    flags = 0x10000000
    if name == "clone":
        child = syscall(number, flags | signal.SIGCHLD, 0, 0, 0, 0)
    else:
        child = syscall(number, struct.pack("QQQQQQQQ", flags, 0, 0, 0, signal.SIGCHLD, 0, 0, 0), 64)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "a process in a new user namespace was made by " + name
def in_child(action):
    reader, writer = os.pipe()
    if os.fork() == 0:
        try:
            os.write(writer, (action() or "").encode())
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    os.close(writer)
    got = os.read(reader, 400).decode()
    code = os.waitstatus_to_exitcode(os.wait()[1])
    if code:
        raise OSError(code, "refused")
    return got
attempt("unshare", lambda: in_child(unshare))
attempt("clone", lambda: in_child(lambda: cloned("clone")))
attempt("clone3", lambda: in_child(lambda: cloned("clone3")))`,
  }),
] as const;

function anotherSessionsProcess(): Attack {
  return {
    id: "process.contained/another-session",
    capability: "process.contained",
    title: "see a process of another session, of a tool or the agent, and its environment",
    perform: async (stage) => {
      const mark = freshNonce();
      const other = await stage.openAnother();
      const env = { BESIDE_SECRET: stage.decoys.secret };
      const [head, tail] = [mark.slice(0, 20), mark.slice(20)];
      let outcome: AttackOutcome | undefined;
      // Agents of two sessions may have the same user, where tools have one each.
      for (const role of [undefined, "agent"] as const) {
        const holder = await other.spawn(commandOf("sys.stdin.read()", { mark }, { env, role }));
        try {
          outcome = outcomeOf(await runProgram(stage.sandbox, look, { head, tail }, { role }));
          if (outcome.result !== "blocked") return outcome;
        } finally {
          await holder.kill();
        }
      }
      return outcome ?? notRun("nothing was tried");
    },
  };
}

/** The mark is passed in two halves, so that the program doesn't find its own command line. */
const look = `
mark = (P["head"] + P["tail"]).encode()
def see():
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            if mark in content(path):
                return "seen at " + path
        except OSError:
            continue
    return None
attempt("command lines", see)
attempt("environments", lambda: each(glob.glob("/proc/[0-9]*/environ"), content))
`;

/** Processes that try to outlive their sandbox. They end by themselves after two minutes. */
const lifetimeAttacks = [outlivesClose(), outlivesParent(), outlivesRunner()] as const;

/** Daemons that left their parent, group and session, and ignore every signal that can be ignored. */
const daemons = `
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 32):
                if number not in (signal.SIGKILL, signal.SIGSTOP):
                    signal.signal(number, signal.SIG_IGN)
            null = os.open("/dev/null", os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            time.sleep(120)
        os._exit(0)
    os.wait()
for _ in range(3):
    daemon()
say("STARTED")
if P["stays"]:
    time.sleep(120)  # Not until its input ends: that comes with the runner's own end of the pipe.
`;

function outlivesClose(): Attack {
  return {
    id: "process.contained/outlive-close",
    capability: "process.contained",
    title: "leave daemons that outlive the sandbox",
    alone: true,
    perform: (stage) =>
      withMark(async (mark) => {
        const main = await stage.sandbox.spawn(commandOf(daemons, { mark, stays: true }));
        const started = await waitForLine(main.stdout, "STARTED");
        if (started === undefined)
          return notRun(`the daemons weren't started: ${(await textOf(main.stderr)).slice(-200)}`);
        const seen = processesWith(mark).length;
        await stage.sandbox.close();
        return left(mark, `${seen} processes were seen on the host, and none is left`);
      }),
  };
}

function outlivesParent(): Attack {
  return {
    id: "process.contained/outlive-parent",
    capability: "process.contained",
    title: "leave daemons that outlive the spawned process",
    perform: (stage) =>
      withMark(async (mark) => {
        const finished = await runProgram(stage.sandbox, daemons, { mark, stays: false });
        if (!finished.stdout.includes("STARTED")) return notRun(finished.stderr.slice(-200));
        return left(mark, "it exited after everything it had started was gone");
      }),
  };
}

function outlivesRunner(): Attack {
  return {
    id: "process.contained/outlive-runner",
    stoppedBy: ["exit with the runner"],
    capability: "process.contained",
    title: "outlive a runner that is killed without warning",
    needsRunner: true,
    alone: true,
    perform: ({ startRunner }) =>
      withMark(async (mark) => {
        if (startRunner === undefined) return notRun("the kit has no way to start a separate runner");
        const runner = await startRunner({ argv: commandOf(daemons, { mark, stays: true }).argv });
        try {
          await runner.says("STARTED");
          await runner.kill();
          // The kernel ends a namespace asynchronously, so this waits a moment before it checks.
          for (let look = 0; look < 50 && insideProcesses(mark, runner.pid).length > 0; look++)
            await moment();
          return left(mark, "nothing of the sandbox was left");
        } finally {
          await runner.kill();
        }
      }),
  };
}

const insideProcesses = (mark: string, runner: number) => processesWith(mark).filter((pid) => pid !== runner);
const moment = () => new Promise((resolve) => setTimeout(resolve, 20));

async function withMark(attack: (mark: string) => Promise<AttackOutcome>): Promise<AttackOutcome> {
  const mark = freshNonce();
  try {
    return await attack(mark);
  } finally {
    endProcessesWith(mark);
  }
}

function left(mark: string, otherwise: string): AttackOutcome {
  const remaining = processesWith(mark).length;
  return remaining > 0 ? reached(`${remaining} processes are still running on the host`) : blocked(otherwise);
}

export const processContained = [...hostProcessAttacks, ...lifetimeAttacks, ...sessionAttacks] as const;
