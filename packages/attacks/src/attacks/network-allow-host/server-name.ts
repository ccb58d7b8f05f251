import { proxyProgram } from "../../programs/proxy-program.js";
import { programAttack } from "../program-attack.js";

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

export const tlsAttacks = [
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
