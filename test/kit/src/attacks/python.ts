/** The interpreter inside, and the environment that it needs. */
export const interpreter = "/usr/bin/python3";
export const searchPath = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/**
 * The beginning of every attacking program. It prints `RAN` first, so that a program that never ran can't pass, then
 * `REACHED …` or `BLOCKED …` for each attempt. Only what the system refuses counts as blocked: a bug in the program
 * ends it with neither.
 */
const preamble = String.raw`
import ctypes, errno, glob, json, os, re, signal, socket, stat, struct, subprocess, sys, time
P = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
SECRET = re.compile(rb"ambit-decoy-[0-9a-f]{32}")

def say(word, text=""):
    print(word, str(text).replace("\n", " ")[:300], flush=True)

def leaks(data):
    """The decoys' secrets in it. Nothing else that an attack reads is ever printed."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    return " ".join(sorted({match.decode() for match in SECRET.findall(data)}))

def check(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result

def syscall(number, *arguments):
    wide = [ctypes.c_void_p(a) if isinstance(a, int) else a for a in arguments]
    return check(libc.syscall(ctypes.c_long(number), *wide))

def content(path, limit=1 << 20):
    with open(path, "rb", buffering=0) as file:
        return file.read(limit)

def memory_leaks(folder, most=4 << 20):
    """Secrets in the writable memory of the process whose folder in /proc this is."""
    found = set()
    maps = content(folder + "/maps").decode()
    with open(folder + "/mem", "rb", buffering=0) as file:
        for line in maps.split("\n"):
            parts = line.split()
            if len(parts) < 2 or not parts[1].startswith("rw"):
                continue
            start, end = (int(part, 16) for part in parts[0].split("-"))
            try:
                file.seek(start)
                found.update(leaks(file.read(min(end - start, most))).split())
            except (OSError, ValueError, OverflowError):
                continue
    return " ".join(found)

def attempt(name, action):
    try:
        got = action()
    except (OSError, MemoryError, EOFError) as error:
        number = getattr(error, "errno", None)
        say("BLOCKED", "%s: %s" % (name, errno.errorcode.get(number, type(error).__name__)))
    else:
        say("REACHED" if got else "BLOCKED", "%s: %s" % (name, got or "nothing found"))

def each(paths, read):
    """The secrets in the readable ones of the paths."""
    found = set()
    for path in paths:
        try:
            found.update(leaks(read(path)).split())
        except OSError:
            continue
    return " ".join(sorted(found))

say("RAN")
`;

/** A complete program. `P` is the attack's parameters. */
export function python(body: string): string {
  return `${preamble}\n${body}`;
}
