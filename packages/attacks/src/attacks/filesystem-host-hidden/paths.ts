import { programAttack } from "../program-attack.js";

/** Access to a file outside by its path. */
export const pathAttacks = [
  programAttack({
    id: "filesystem.host-hidden/by-path",
    title: "read a file of the host by its path",
    parameters: ({ decoys }) => ({ path: decoys.folder.secretFile }),
    program: `attempt("open", lambda: leaks(content(P["path"])))`,
  }),
  programAttack({
    id: "filesystem.host-hidden/by-parents",
    title: "leave the workspace through ..",
    parameters: ({ decoys }) => ({ path: decoys.folder.secretFile }),
    program: `
attempt("relative", lambda: leaks(content("../" * 40 + P["path"].lstrip("/"))))
attempt("cwd", lambda: leaks(content("/proc/self/cwd/" + "../" * 40 + P["path"].lstrip("/"))))`,
  }),
  programAttack({
    id: "filesystem.host-hidden/symlink",
    title: "read a file of the host through a symbolic link in the workspace",
    parameters: ({ decoys, sandbox }) => ({ path: decoys.folder.secretFile, home: sandbox.home }),
    program: `
def through(target, rest=""):
    link = "link-%d" % time.monotonic_ns()
    os.symlink(target, link)
    return leaks(content(link + rest))
os.chdir(os.environ.get("TMPDIR", "/tmp"))
attempt("file", lambda: through(P["path"]))
attempt("folder", lambda: through(os.path.dirname(P["path"]), "/" + os.path.basename(P["path"])))
attempt("root", lambda: through("/proc/self/root", P["path"]))`,
  }),
  programAttack({
    id: "filesystem.host-hidden/hard-link",
    title: "read a file of the host through a hard link",
    parameters: ({ decoys }) => ({ path: decoys.folder.victimFile, secret: decoys.folder.secretFile }),
    // A user may link only to files that it may write, so the victim replaces the secret.
    program: `
def linked(source):
    target = os.path.join(os.path.dirname(source), "link-%d" % time.monotonic_ns())
    for folder in (os.getcwd(), os.environ.get("TMPDIR", "/tmp"), os.path.dirname(source)):
        target = os.path.join(folder, "link-%d" % time.monotonic_ns())
        try:
            os.link(source, target)
            return content(target) and "linked into " + folder
        except OSError as error:
            failure = error
    raise failure
attempt("link", lambda: linked(P["path"]))`,
  }),
  programAttack({
    id: "filesystem.host-hidden/other-roots",
    title: "read a file of the host through the roots and working folders of other processes",
    parameters: ({ decoys }) => ({ path: decoys.folder.secretFile }),
    program: `
places = glob.glob("/proc/[0-9]*/root") + glob.glob("/proc/[0-9]*/cwd") + glob.glob("/proc/[0-9]*/task/*/root")
attempt("roots", lambda: each([place + "/" + "../" * 20 + P["path"] for place in places] +
                              [place + P["path"] for place in places], content))`,
  }),
  programAttack({
    id: "filesystem.host-hidden/search",
    title: "search every readable folder for files of others",
    parameters: ({ decoys }) => ({ folder: decoys.folder.path, name: decoys.folder.path.split("/").at(-1) }),
    program: `
def search():
    entries = 0
    for folder, folders, files in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys", "usr", "dev", "lib", "lib64")]
        entries += len(folders) + len(files)
        if P["name"] in folders or folder.endswith(P["name"]):
            return os.path.join(folder, P["name"])
        if entries > 200000:
            break
    return None
attempt("walk", search)
attempt("listed", lambda: os.listdir(P["folder"]) and "the folder can be listed")`,
  }),
  programAttack({
    id: "filesystem.host-hidden/homes-and-keys",
    title: "open the host's password hashes, its keys and the homes of its users",
    needs: "a user who may read them",
    asRoot: true,
    program: `
def opened(path):
    os.close(os.open(path, os.O_RDONLY))
    return "opened " + path
for path in ["/etc/shadow", "/etc/gshadow", "/etc/sudoers"] + glob.glob("/etc/ssh/*_key"):
    attempt(path, lambda: opened(path))
def homes():
    import pwd
    for user in pwd.getpwall():
        if user.pw_dir.startswith(("/root", "/home/")) and user.pw_dir != os.environ.get("HOME") and user.pw_uid != os.getuid():
            if os.path.isdir(user.pw_dir) and os.listdir(user.pw_dir):
                return "listed the home of " + user.pw_name
    return None
attempt("homes", homes)`,
  }),
] as const;
