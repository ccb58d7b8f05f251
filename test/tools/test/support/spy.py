"""Looks for texts wherever this process gets: in every other process, and in every folder that tools and agents use.
Needles come reversed, so that the spy doesn't find what was said to itself."""
import json
import os
import sys
import time

EVERYWHERE = [".", "/tmp", "/dev/shm", "/var/tmp", "/run", "/home", "/workspace", "/var/lib", "/etc", "/root", "/opt"]


def main(needles, runner, roots=EVERYWHERE):
    wanted = {needle: needle[::-1].encode() for needle in needles}
    found, looked = {}, {"processes": 0, "files": 0}
    until(lambda: os.path.exists("victim-is-ready"))

    def look(data, where):
        for needle, text in wanted.items():
            if text in data:
                found.setdefault(needle, where)

    for pid in processes(str(runner)):
        looked["processes"] += 1
        for name in ("cmdline", "environ"):
            look(read(f"/proc/{pid}/{name}"), name)
        for chunk in memory(pid):
            look(chunk, "memory")
    for path in files(roots):
        looked["files"] += 1
        look(read(path), f"file {path}")
    open("spy-is-done", "w").close()
    return {"found": found, "looked": looked}


def until(holds):
    for _ in range(1500):
        if holds():
            return
        time.sleep(0.01)
    raise TimeoutError("the victim didn't start")


def processes(runner):
    """All but this one; where the runner itself is in sight, it and what it has started."""
    pids = [pid for pid in os.listdir("/proc") if pid.isdigit() and pid != str(os.getpid())]
    if runner not in pids:
        return pids
    parents = {pid: parent(pid) for pid in pids}
    family = {runner}
    while more := {pid for pid in pids if parents[pid] in family and pid not in family}:
        family |= more
    return family


def parent(pid):
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return fields[1].decode() if len(fields) > 1 else ""


def memory(pid):
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
            for line in maps:
                span, rights = line.split()[:2]
                start, end = (int(part, 16) for part in span.split("-"))
                if not rights.startswith("rw") or end - start > 1 << 28:
                    continue
                try:
                    mem.seek(start)
                    yield mem.read(end - start)
                except OSError:
                    continue
    except OSError:
        return


def files(roots):
    """What was written in the last minutes."""
    for root in roots:
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    state = os.lstat(path)
                except OSError:
                    continue
                recent = time.time() - state.st_mtime < 300
                if recent and state.st_mode & 0o170000 == 0o100000 and state.st_size < 1 << 20:
                    yield path


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


if __name__ == "__main__":
    print(json.dumps(main(**json.loads(sys.argv[1]))))
