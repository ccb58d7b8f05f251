import { freshNonce } from "../../decoys/nonce.js";
import { commandOf, runProgram } from "../../programs/run-program.js";
import { type Attack, type AttackOutcome, notRun } from "../attack.js";
import { outcomeOf, programAttack } from "../program-attack.js";

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
