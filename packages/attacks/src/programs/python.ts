/** The interpreter inside, and the environment that it needs. */
export const interpreter = "/usr/bin/python3";
export const searchPath = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/**
 * The beginning of every attacking program. It prints `RAN` first, so that a program that never ran can't pass, then
 * `REACHED …` or `BLOCKED …` for each attempt. Only what the system refuses counts as blocked: a bug in the program
 * ends it with neither.
 */
const preamble = String.raw`
import errno, os, stat, sys, time

class Lazy:
    """Loaded when it is first used: most modules take longer to load than a program takes to run. What can't be loaded
    breaks the program, since an attack whose tools are missing wasn't stopped."""
    def __init__(self, load):
        self.__dict__["load"] = load
    def __getattr__(self, name):
        if "loaded" not in self.__dict__:
            try:
                self.__dict__["loaded"] = self.__dict__["load"]()
            except BaseException as error:
                say("BROKEN", repr(error))
                os._exit(1)
        return getattr(self.__dict__["loaded"], name)

def module(name):
    return Lazy(lambda: __import__(name))

def load_libc():
    loaded = ctypes.CDLL(None, use_errno=True)
    loaded.syscall.restype = ctypes.c_long
    return loaded

ctypes, glob, json, re, signal = map(module, ("ctypes", "glob", "json", "re", "signal"))
socket, struct, subprocess = map(module, ("socket", "struct", "subprocess"))
libc = Lazy(load_libc)
# JSON of the kit's own, read without its module.
P = eval(sys.argv[1], {"true": True, "false": False, "null": None})

def say(word, text=""):
    print(word, str(text).replace("\n", " ")[:300], flush=True)

def leaks(data):
    """The decoys' secrets in it. Nothing else that an attack reads is ever printed."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    found = set()
    for rest in data.split(b"ambit-decoy-")[1:]:
        number = rest[:32]
        if len(number) == 32 and not number.strip(b"0123456789abcdef"):
            found.add("ambit-decoy-" + number.decode())
    return " ".join(sorted(found))

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
