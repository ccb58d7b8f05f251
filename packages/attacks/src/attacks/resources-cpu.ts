import { smallLimits } from "../stage/boundaries.js";
import { programAttack } from "./program-attack.js";

const limit = smallLimits.cpus;
/** Between the limit and what even a busy machine provides. */
const threshold = limit * 2;
/** What a limited sandbox uses at most; between this and the threshold, a busy machine may have been the limit. */
const limited = limit * 1.3;

/** Bounded: less than a second of each of `count` processes. */
const burn = `
def burn(count):
    """Cores used: the processor time of all processes, divided by the elapsed time."""
    pids = []
    begin = time.monotonic()
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            while time.monotonic() - begin < 0.8:
                sum(range(1000))
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    spent = os.times()
    return (spent.children_user + spent.children_system) / (time.monotonic() - begin)

def too_much(count):
    for _ in range(4):
        cores = burn(count)
        if cores > P["threshold"]:
            return "%.2f cores were used with a limit of %.2f" % (cores, P["limit"])
        say("BLOCKED", "%.2f cores" % cores)
        if cores <= P["limited"]:
            return None
    return None
`;

export const resourcesCpu = [
  programAttack({
    id: "resources.cpu/one-process",
    title: `use a whole core with a limit of ${limit}`,
    alone: true,
    parameters: () => ({ threshold, limited, limit }),
    program: `${burn}
attempt("burn", lambda: too_much(1))`,
  }),
  programAttack({
    id: "resources.cpu/many-processes",
    title: "exceed the limit with many processes, each within it",
    alone: true,
    parameters: () => ({ threshold, limited, limit }),
    program: `${burn}
attempt("burn", lambda: too_much(8))`,
  }),
] as const;
