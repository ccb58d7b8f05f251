import { smallLimits } from "../stage/boundaries.js";
import { programAttack } from "./program-attack.js";

const limit = smallLimits.memoryMb;
/** Bounded: unguarded it briefly takes no more than this from the machine. */
const much = limit * 2 + 64;

const take = `
def hold(megabytes):
    held = []
    for _ in range(megabytes // 4):
        block = bytearray(4 << 20)
        block[::4096] = b"x" * len(block[::4096])
        held.append(block)
    return held
def take(megabytes):
    return "%d MiB were used" % (4 * len(hold(megabytes)))
`;

export const resourcesMemory = [
  programAttack({
    id: "resources.memory/allocate",
    title: `use ${much} MiB with a limit of ${limit}`,
    alone: true,
    killedIsBlocked: true,
    parameters: () => ({ much }),
    program: `${take}
attempt("allocate", lambda: take(P["much"]))`,
  }),
  programAttack({
    id: "resources.memory/children",
    title: "exceed it with several processes, each within the limit",
    alone: true,
    killedIsBlocked: true,
    parameters: () => ({ each: Math.floor(much / 4) }),
    program: `${take}
import select
def children():
    ready, again, release = os.pipe(), os.pipe(), os.pipe()
    pids = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            os.close(again[1])
            os.close(release[1])
            held = hold(P["each"])
            os.write(ready[1], b"x")
            # A process that was killed meanwhile can't say it again, although it may not have ended yet.
            os.read(again[0], 1)
            os.write(ready[1], b"x" * (1 if len(held) == P["each"] // 4 else 0))
            os.read(release[0], 1)
            os._exit(0)
        pids.append(pid)
    os.close(ready[1])
    count, ended = 0, set()
    while count < 8 and not ended:
        if select.select([ready[0]], [], [], 0.05)[0]:
            before = count
            count += len(os.read(ready[0], 8))
            if before < 4 <= count:
                os.write(again[1], b"x" * 4)
        ended = {pid for pid in pids if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)}
    for pid in pids:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
    return "4 processes held %d MiB each at once" % P["each"] if count == 8 and not ended else None
attempt("children", children)`,
  }),
  programAttack({
    id: "resources.memory/scratch",
    title: "exceed it with scratch files in memory",
    alone: true,
    killedIsBlocked: true,
    parameters: () => ({ much }),
    program: `
def fill():
    number = {"x86_64": 319, "aarch64": 279}[os.uname().machine]
    descriptor = syscall(number, b"decoy", 0)
    for _ in range(P["much"]):
        os.write(descriptor, b"x" * (1 << 20))
    return "%d MiB in a file in memory" % P["much"]
attempt("memfd", fill)`,
  }),
] as const;
