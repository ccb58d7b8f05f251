import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { interpreter, python, searchPath } from "../programs/python.js";
import { freshNonce } from "./nonce.js";

/** What a decoy process shares with processes that can reach it. Undefined if this host doesn't support it. */
interface Shared {
  readonly pid: number;
  /** Its initial priority, which is the kit's own and may have been lowered. */
  readonly nice: number;
  /** Key of a System V segment that holds the secret. */
  readonly segment?: number;
  /** Name of a POSIX message queue that holds it. */
  readonly queue?: string;
  /** A file of shared memory that holds it. */
  readonly memoryFile?: string;
  /** Serial number of a key in the user's keyring that holds it. */
  readonly key?: number;
}

/** One of the kit's processes, with a secret in its environment and its memory. */
export interface DecoyProcess extends Shared {
  /** In its command line. */
  readonly nonce: string;
  /** Signals that it received, by name. */
  signals(): Promise<readonly string[]>;
  /** Whether anything stopped it, or changed its priority. */
  disturbed(): Promise<string | undefined>;
  close(): Promise<void>;
}

/**
 * @param user the user of the process, if the kit may choose it; default the kit's own.
 * @param userNamespace path of its user namespace; default the kit's own.
 */
export async function startDecoyProcess(
  secret: string,
  user?: { readonly uid: number; readonly gid: number },
  userNamespace?: string,
): Promise<DecoyProcess> {
  const nonce = freshNonce();
  const argv = ["-I", "-S", "-c", python(decoyProgram), JSON.stringify({ nonce }), nonce];
  const [program = interpreter, ...prefix] =
    userNamespace === undefined
      ? []
      : ["nsenter", `--user=${userNamespace}`, "--preserve-credentials", "--", interpreter];
  const child = spawn(program, [...prefix, ...argv], {
    env: { PATH: searchPath, DECOY_SECRET: secret },
    stdio: ["pipe", "pipe", "pipe"],
    ...(user ?? {}),
  });
  let complaints = "";
  child.stderr.on("data", (data) => {
    complaints += String(data);
  });
  child.stdin.on("error", () => undefined); // An attack may have ended it, which its exit shows.
  const answers = createInterface({ input: child.stdout });
  const said: string[] = [];
  const waiting: ((line: string) => void)[] = [];
  const gone = once(child, "exit");
  answers.on("line", (line) => {
    const next = waiting.shift();
    if (next === undefined) said.push(line);
    else next(line);
  });
  const line = () => {
    const earlier = said.shift();
    if (earlier !== undefined) return Promise.resolve(earlier);
    return Promise.race([
      new Promise<string>((resolve) => waiting.push(resolve)),
      gone.then(([code, name]) =>
        Promise.reject(new Error(`the decoy ended (${code ?? name}): ${complaints}`)),
      ),
    ]);
  };
  await line(); // RAN
  const shared: Shared = JSON.parse(await line());
  const ask = async () => {
    child.stdin.write("?\n");
    const state: { signals: string[]; nice: number; tracer: number } = JSON.parse(await line());
    return state;
  };
  return {
    ...shared,
    nonce,
    signals: async () => (await ask()).signals,
    disturbed: async () => {
      const { nice, tracer } = await ask();
      if (nice !== shared.nice) return `its priority was set to ${nice}`;
      return tracer === 0 ? undefined : "it was being traced";
    },
    close: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.stdin.end();
      const limit = setTimeout(() => child.kill("SIGKILL"), 2_000);
      await gone;
      clearTimeout(limit);
    },
  };
}

/**
 * Puts the secret wherever processes of one host can share it, reports the places, and responds until its input ends.
 */
const decoyProgram = String.raw`
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
