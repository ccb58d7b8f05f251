import { createServer } from "node:http";
import { boundConnections } from "../../decoys/bound-connections.js";
import { commandOf, textOf } from "../../programs/run-program.js";
import type { Attack } from "../attack.js";
import { outcomeOf, programAttack } from "../program-attack.js";
import { credentialTraces } from "./credential-traces.js";
import { credentialAttacks } from "./credentials.js";

/**
 * The runner holds a credential in its environment, in a file, in one of its processes and in what it sends over the
 * loopback. None of it may be found inside.
 */
export const secretsHidden = [
  programAttack({
    id: "secrets.hidden/environment",
    title: "search every readable environment and command line",
    program: `
attempt("own", lambda: leaks(json.dumps(dict(os.environ))))
attempt("others", lambda: each(glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"), content))`,
  }),
  programAttack({
    id: "secrets.hidden/files",
    stoppedBy: ["hidden host files"],
    title: "search every readable file",
    parameters: ({ decoys }) => ({ folder: decoys.folder.path }),
    program: `
def search():
    entries, found = 0, set()
    tops = [P["folder"], "/tmp", "/run", "/home", "/root", "/etc", "/var/tmp", "/dev/shm", os.getcwd(), os.environ.get("HOME", "/")]
    for top in tops:
        for folder, _, files in os.walk(top):
            paths = [os.path.join(folder, name) for name in files]
            found.update(each([path for path in paths if os.path.isfile(path)], lambda path: content(path, 1 << 16)).split())
            entries += len(files)
            if entries > 50000 or found:
                return " ".join(found)
    return " ".join(found)
attempt("walk", search)`,
  }),
  programAttack({
    id: "secrets.hidden/processes",
    stoppedBy: ["pid namespace", "user namespace"],
    title: "search the memory of every readable process",
    parameters: async ({ decoyProcess }) => ({ pid: (await decoyProcess()).pid }),
    program: `
def all_memory():
    found = set()
    for folder in ["/proc/%d" % P["pid"], "/proc/1", "/proc/%d" % os.getppid()]:
        try:
            found.update(memory_leaks(folder).split())
        except OSError:
            continue
    return " ".join(found)
attempt("memory", all_memory)`,
  }),
  traffic(),
  ...credentialAttacks,
  ...credentialTraces,
] as const;

/** A packet socket on every link sees what the runner sends; without the privilege to open one, nothing does. */
function traffic(): Attack {
  return {
    id: "secrets.hidden/traffic",
    capability: "secrets.hidden",
    title: "listen to the runner's traffic",
    needs: "CAP_NET_RAW",
    asRoot: true,
    perform: async ({ sandbox, decoys }) => {
      const server = createServer((_request, response) => response.end("ok"));
      boundConnections(server);
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      const listener = await sandbox.spawn(commandOf(listen, {}));
      const send = async () => {
        const headers = { authorization: `Bearer ${decoys.secret}` };
        await (await fetch(`http://127.0.0.1:${port}/`, { headers })).text();
      };
      // Sent repeatedly, since the listener may start at any moment.
      const sending = setInterval(() => void send().catch(() => undefined), 50);
      try {
        const [stdout, stderr, exit] = await Promise.all([
          textOf(listener.stdout),
          textOf(listener.stderr),
          listener.exit,
        ]);
        return outcomeOf({ stdout, stderr, ...exit });
      } finally {
        clearInterval(sending);
        const closed = new Promise((resolve) => server.close(resolve));
        server.closeAllConnections();
        await closed;
      }
    },
  };
}

const listen = `
def sniff():
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)) as tap:
        tap.settimeout(0.2)
        found = ""
        end = time.monotonic() + 2
        while not found and time.monotonic() < end:
            try:
                found = leaks(tap.recv(65536))
            except socket.timeout:
                continue
        return found
attempt("packet socket", sniff)
`;
