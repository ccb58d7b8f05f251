/**
 * Puts the secret wherever processes of one host can share it, reports the places, and responds until its input ends.
 */
export const decoyProgram = String.raw`
import atexit
secret = os.environ["DECOY_SECRET"].encode()
remembered = bytearray(secret)
shared = {"pid": os.getpid(), "nice": os.nice(0)}
seen = []

# Anyone of the same user may trace it, whatever the host's default: the sandbox has to stop it.
libc.prctl(0x59616D61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, lambda got, frame: seen.append(signal.Signals(got).name))

def segment():
    key = 0x4D000000 | int.from_bytes(os.urandom(3), "big")
    identity = check(libc.shmget(key, 4096, 0o1666))
    atexit.register(lambda: libc.shmctl(identity, 0, None))
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(identity, None, 0)
    ctypes.memmove(address, secret, len(secret))
    shared["segment"] = key

def queue():
    library = ctypes.CDLL("librt.so.1", use_errno=True)
    name = "/ambit-decoy-%d" % os.getpid()
    descriptor = check(library.mq_open(name.encode(), 0o102, 0o666, None))
    atexit.register(lambda: library.mq_unlink(name.encode()))
    check(library.mq_send(descriptor, secret, ctypes.c_size_t(len(secret)), 0))
    shared["queue"] = name

def memory_file():
    path = "/dev/shm/ambit-decoy-%d" % os.getpid()
    with open(path, "wb") as file:
        file.write(secret)
    os.chmod(path, 0o666)
    atexit.register(lambda: os.unlink(path))
    shared["memoryFile"] = path

def key():
    numbers = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
    serial = syscall(numbers[0], b"user", b"ambit-decoy", secret, len(secret), -4)
    syscall(numbers[1], 5, serial, 0x3F3F0000)  # KEYCTL_SETPERM: its user may do anything with it.
    shared["key"] = serial

for plant in (segment, queue, memory_file, key):
    try:
        plant()
    except (OSError, KeyError):
        pass  # This host has none of it: the attack says so.
print(json.dumps(shared), flush=True)
for _ in sys.stdin:
    tracer = re.search(r"TracerPid:\s+(\d+)", open("/proc/self/status").read())
    state = {"signals": seen, "nice": os.nice(0), "tracer": int(tracer.group(1))}
    print(json.dumps(state), flush=True)
`;
