"""Tries system calls by number and prints `name result` lines: 0 and above worked, below is -errno.

Runs inside a bubblewrap jail, once without the filter (the control) and once with it.
"""
import ctypes, errno, mmap, os, platform, pty, signal, socket, struct, sys, fcntl, subprocess, threading

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
numbers = dict(word.split("=") for word in sys.argv[1].split(","))


def call(name, *arguments):
    wide = [ctypes.c_void_p(a) if isinstance(a, int) else a for a in arguments]
    result = libc.syscall(ctypes.c_long(int(numbers[name])), *wide)
    return result if result >= 0 else -ctypes.get_errno()


def in_child(attempt):
    """The attempt's result, from a separate process: some of them can't be undone."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            result = attempt()
        except OSError as error:
            result = -error.errno
        os.write(writer, struct.pack("q", result))
        os._exit(0)
    os.close(writer)
    data = os.read(reader, 8)
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return -1000 - os.WTERMSIG(status)
    return struct.unpack("q", data)[0]


def new_process(name, *arguments):
    child = call(name, *arguments)
    if child == 0:
        os._exit(0)
    if child > 0:
        os.waitpid(child, 0)
    return child


def file_with(mode=0o644):
    path = b"/scratch/file-%d" % len(os.listdir("/scratch"))
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, mode))
    return path


def inject_into_terminal(command):
    terminal, line = pty.openpty()
    os.setsid()
    fcntl.ioctl(line, 0x540E, 0)  # TIOCSCTTY
    return call("ioctl", line, command, ctypes.create_string_buffer(b"x"))


def read_own_memory():
    source, target = ctypes.create_string_buffer(b"secret!!"), ctypes.create_string_buffer(8)
    local = struct.pack("QQ", ctypes.addressof(target), 8)
    remote = struct.pack("QQ", ctypes.addressof(source), 8)
    return call("process_vm_readv", os.getpid(), local, 1, remote, 1, 0)


def other_architecture():
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex("53b814000000cd805bc3"))  # push rbx; mov eax, 20 (getpid); int 0x80; pop rbx; ret
    function = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return function()


def opened(family):
    socket.socket(family, socket.SOCK_STREAM).close()
    return 0


HERE = -100  # AT_FDCWD
attempts = {
    "unshare": lambda: call("unshare", 0x10000000),
    "clone": lambda: new_process("clone", 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0),
    "clone3": lambda: new_process("clone3", struct.pack("QQQQQQQQ", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0), 64),
    "io_uring_setup": lambda: call("io_uring_setup", 1, ctypes.create_string_buffer(120)),
    "openat2": lambda: call("openat2", HERE, b"/", struct.pack("QQQ", 0, 0, 0), 24),
    "add_key": lambda: call("add_key", b"user", b"decoy", b"x", 1, -2),
    "keyctl": lambda: call("keyctl", 0, -4, 1),
    "ptrace": lambda: call("ptrace", 0, 0, 0, 0),
    "process_vm_readv": read_own_memory,
    "pidfd_getfd": lambda: call("pidfd_getfd", os.pidfd_open(os.getpid()), 1, 0),
    "socket-vsock": lambda: opened(40),
    "chmod": lambda: call("fchmodat", HERE, file_with(), 0o4755),
    "fchmod": lambda: call("fchmod", os.open(file_with(), os.O_RDONLY), 0o2755),
    "fchmodat2": lambda: call("fchmodat2", HERE, file_with(), 0o4755, 0),
    "openat": lambda: call("openat", HERE, b"/scratch/set-id", os.O_CREAT | os.O_WRONLY, 0o4755),
    "openat-tmpfile": lambda: call("openat", HERE, b"/scratch", os.O_TMPFILE | os.O_WRONLY, 0o4755),
    "mknodat": lambda: call("mknodat", HERE, b"/scratch/node", 0o104755, 0),
    "ioctl-tiocsti": lambda: inject_into_terminal(0x5412),
    "ioctl-tiocsti-high-bits": lambda: inject_into_terminal(0x1_0000_5412),
    "fcntl-lease": lambda: call("fcntl", os.open(file_with(), os.O_RDONLY), 1024, fcntl.F_WRLCK),
    "io_setup": lambda: call("io_setup", 1, ctypes.create_string_buffer(8)),
    "userfaultfd": lambda: call("userfaultfd", 1),
    "perf_event_open": lambda: call(
        "perf_event_open", struct.pack("IIQQQQQ", 1, 128, 0, 0, 0, 0, 0x61).ljust(128, b"\0"), 0, -1, -1, 0
    ),
    "open_tree": lambda: call("open_tree", HERE, b"/", 0),
    "adjtimex": lambda: call("adjtimex", ctypes.create_string_buffer(256)),
    # What must keep working.
    "allowed-open-with-chance-mode": lambda: call("openat", HERE, b"/usr", os.O_RDONLY, 0o6777),
    "allowed-chmod": lambda: call("fchmodat", HERE, file_with(), 0o1755),
    "allowed-create": lambda: call("openat", HERE, b"/scratch/plain", os.O_CREAT | os.O_WRONLY, 0o755),
    "allowed-unix": lambda: opened(socket.AF_UNIX),
    "allowed-inet": lambda: opened(socket.AF_INET),
    "allowed-inet6": lambda: opened(socket.AF_INET6),
    "allowed-subprocess": lambda: subprocess.call(["/usr/bin/true"]),
    "allowed-thread": lambda: (lambda t: (t.start(), t.join(), 0)[2])(threading.Thread(target=int)),
}
if platform.machine() == "x86_64":
    attempts["foreign-architecture"] = other_architecture

print("RAN", os.getuid(), flush=True)
for name, attempt in attempts.items():
    print(name, in_child(attempt), flush=True)
