import { smallLimits } from "../../stage/boundaries.js";
import { programAttack } from "../program-attack.js";

const limit = smallLimits.cpus;
/** Between the limit and what a machine gives freely, however busy it is. */
const threshold = limit * 2;

/** Bounded: a second and a half of each of `count` processes. */
const burn = `
def burn(count):
    """Cores had, as the processor time of all over the time that went by."""
    pids = []
    begin = time.monotonic()
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            while time.monotonic() - begin < 1.5:
                sum(range(1000))
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    spent = os.times()
    return (spent.children_user + spent.children_system) / (time.monotonic() - begin)

def too_much(count):
    cores = burn(count)
    if cores > P["threshold"]:
        return "%.2f cores were had with a limit of %.2f" % (cores, P["limit"])
    say("BLOCKED", "%.2f cores" % cores)
    return None
`;

export const resourcesCpu = [
  programAttack({
    id: "resources.cpu/one-process",
    title: `have a whole core with a limit of ${limit}`,
    alone: true,
    parameters: () => ({ threshold, limit }),
    program: `${burn}
attempt("burn", lambda: too_much(1))`,
  }),
  programAttack({
    id: "resources.cpu/many-processes",
    title: "have more than the limit by many processes, each of them within it",
    alone: true,
    parameters: () => ({ threshold, limit }),
    program: `${burn}
attempt("burn", lambda: too_much(8))`,
  }),
] as const;
