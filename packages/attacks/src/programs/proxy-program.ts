/**
 * Requests through every proxy that the sandbox names, and to the destination itself. `ways(host, port)` returns each
 * way's name and function; names are bytes, so that a host may be spelled in any way.
 */
export const proxyProgram = String.raw`
from urllib.parse import urlsplit

def proxies():
    """Host and port of every proxy that the environment names, and every unix socket that can be found."""
    found = set()
    for name, value in os.environ.items():
        if name.lower().endswith("_proxy") and name.lower() != "no_proxy":
            parts = urlsplit(value if "//" in value else "//" + value)
            if parts.hostname and parts.port:
                found.add((parts.hostname, parts.port))
    # Sockets and folders that were brought in one by one, as a jail does. Never the host's own: those are real.
    for line in content("/proc/self/mountinfo").decode().split("\n"):
        fields = line.split()
        if len(fields) < 5 or fields[3] == "/":
            continue
        for path in [fields[4]] + glob.glob(fields[4] + "/*"):
            try:
                if stat.S_ISSOCK(os.stat(path).st_mode):
                    found.add((path, 0))
            except OSError:
                continue
    return sorted(found)

def dial(proxy):
    if proxy[1] == 0:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(5)
        client.connect(proxy[0])
        return client
    return socket.create_connection(proxy, timeout=5)

def request(host, port):
    head = b"GET / HTTP/1.1\r\nHost: %s:%d\r\nX-Nonce: %s\r\nConnection: close\r\n\r\n"
    return head % (host, port, P["nonce"].encode())

def everything(client):
    data = b""
    try:
        while len(data) < 65536 and b"ambit-decoy-" not in data and b"ambit-listed" not in data:
            more = client.recv(4096)
            if not more:
                break
            data += more
    except OSError:
        pass
    return data

def directly(host, port):
    # Never a resolver: a name is either this host's own, or an address in some spelling.
    name = host.decode("latin1")
    own = ("localhost", P.get("host", "").lower())
    if name.lower() not in own or name.lower().rstrip(".").endswith(".test"):
        socket.getaddrinfo(name, port, flags=socket.AI_NUMERICHOST)
    with socket.create_connection((name, port), timeout=5) as client:
        client.send(request(host, port))
        return everything(client)

def by_connect(proxy, host, port):
    with dial(proxy) as client:
        client.send(b"CONNECT %s:%d HTTP/1.1\r\nHost: %s:%d\r\n\r\n" % (host, port, host, port))
        answer = client.recv(4096)
        if b" 200" not in answer.split(b"\r\n")[0]:
            return answer
        client.send(request(host, port))
        return answer + everything(client)

def by_address_form(proxy, host, port, named=None):
    with dial(proxy) as client:
        lines = b"GET http://%s:%d/ HTTP/1.1\r\nHost: %s\r\nX-Nonce: %s\r\nConnection: close\r\n\r\n"
        client.send(lines % (host, port, named or b"%s:%d" % (host, port), P["nonce"].encode()))
        return everything(client)

def by_socks(proxy, host, port):
    with dial(proxy) as client:
        client.send(b"\x05\x01\x00")
        if client.recv(2) != b"\x05\x00":
            return b""
        client.send(b"\x05\x01\x00" + socks_address(host) + struct.pack(">H", port))
        answer = client.recv(64)
        if answer[1:2] != b"\x00":
            return b""
        client.send(request(host, port))
        return everything(client)

def socks_address(host):
    for family, kind in ((socket.AF_INET, b"\x01"), (socket.AF_INET6, b"\x04")):
        try:
            return kind + socket.inet_pton(family, host.decode("latin1").strip("[]"))
        except (OSError, ValueError):
            continue
    return b"\x03" + bytes([len(host)]) + host

def ways(host, port):
    text = ascii(host.decode("latin1"))
    yield "directly " + text, lambda: directly(host, port)
    for proxy in proxies():
        for how in (by_connect, by_address_form, by_socks):
            yield "%s %s" % (how.__name__, text), lambda: how(proxy, host, port)

def spellings(address):
    """An IPv4 address as one number, in hexadecimal and octal, short, with a dot, and as IPv6."""
    number, parts = int.from_bytes(socket.inet_aton(address), "big"), tuple(socket.inet_aton(address))
    rest, high, low = number & 0xFFFFFF, number >> 16, number & 0xFFFF
    texts = ["%d" % number, "0x%08x" % number, "0x%x.%d" % (parts[0], rest), "0%o.%d.%d.%d" % parts, "%d.%d" % (parts[0], rest),
             address + ".", "[::ffff:%s]" % address, "::ffff:%x:%x" % (high, low), "[::ffff:%x:%x]" % (high, low)]
    # Every address of this host.
    return [text.encode() for text in texts + (["0"] if address == "127.0.0.1" else [])]

def attempt_all(hosts, port, judge=leaks):
    for host in hosts:
        for name, way in ways(host, port):
            try:
                attempt(name, lambda: judge(way()))
            except (UnicodeError, ValueError):
                say("BLOCKED", name + ": can't be written so")
`;
