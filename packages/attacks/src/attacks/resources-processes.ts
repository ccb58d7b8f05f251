import { smallLimits } from "../stage/boundaries.js";
import { programAttack } from "./program-attack.js";

const limit = smallLimits.processes;
/** Bounded: unguarded there are briefly no more than this, asleep. */
const many = limit * 2;

/** Children wait for the end of a pipe, which comes when their parent ends in any way. */
const children = `
def have(many, start):
    hold = os.pipe()
    pids = []
    try:
        for _ in range(many):
            pids.append(start(hold))
        return "%d at once" % len(pids)
    finally:
        os.close(hold[1])
        os.close(hold[0])
        for pid in pids:
            if pid:
                os.waitpid(pid, 0)

def wait_for_the_end(hold):
    os.close(hold[1])
    os.read(hold[0], 1)
    os._exit(0)
`;

export const resourcesProcesses = [
  programAttack({
    id: "resources.processes/fork",
    title: `start ${many} processes with a limit of ${limit}`,
    alone: true,
    parameters: () => ({ many }),
    program: `${children}
def start(hold):
    pid = os.fork()
    if pid == 0:
        wait_for_the_end(hold)
    return pid
attempt("fork", lambda: have(P["many"], start))`,
  }),
  programAttack({
    id: "resources.processes/detached",
    title: "exceed it with daemons that left their parent and session",
    alone: true,
    parameters: () => ({ many }),
    program: `${children}
def start(hold):
    ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        try:
            inner = os.fork()
        except OSError:
            os._exit(1)
        if inner == 0:
            os.write(ready[1], b"x")
            os.close(ready[1])
            wait_for_the_end(hold)
        os._exit(0)
    os.close(ready[1])
    began = os.read(ready[0], 1)
    os.close(ready[0])
    os.waitpid(pid, 0)
    if not began:
        raise OSError(errno.EAGAIN, "refused")
    return 0
attempt("daemons", lambda: have(P["many"], start))`,
  }),
  programAttack({
    id: "resources.processes/threads",
    title: "exceed it with threads",
    alone: true,
    parameters: () => ({ many }),
    program: `
import threading
def threads():
    release = threading.Event()
    started = []
    try:
        for _ in range(P["many"]):
            thread = threading.Thread(target=release.wait, daemon=True)
            thread.start()
            started.append(thread)
        return "%d at once" % len(started)
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, str(error))
    finally:
        release.set()
        for thread in started:
            thread.join()
attempt("threads", threads)`,
  }),
] as const;
