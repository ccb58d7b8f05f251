/**
 * What programs need of Python's own modules, without the rest: `socket` or `glob` takes longer to load than an attack
 * to run. A program gets those that it names. Each may use the ones before it.
 */
export const lightModules: readonly { readonly name: string; readonly text: string }[] = [
  {
    name: "socket",
    text: `
def load_socket():
    import _socket
    class Socket(_socket.socket):
        def __enter__(self):
            return self
        def __exit__(self, *_):
            self.close()
    def connected(address, timeout):
        failure = None
        for family, kind, protocol, _, place in _socket.getaddrinfo(*address, 0, _socket.SOCK_STREAM):
            client = Socket(family, kind, protocol)
            try:
                client.settimeout(timeout)
                client.connect(place)
                return client
            except OSError as error:
                failure = error
                client.close()
        raise failure
    class Module:
        socket, create_connection = Socket, staticmethod(connected)
        def __getattr__(self, name):
            return getattr(_socket, name)
    return Module()
socket = Lazy(load_socket)
`,
  },
  {
    name: "glob",
    text: `
def _fits(name, pattern):
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(_fits(name[start:], pattern[1:]) for start in range(len(name) + 1))
    if pattern.startswith("[0-9]"):
        return name[:1].isdigit() and _fits(name[1:], pattern[5:])
    return name != "" and pattern[0] in ("?", name[0]) and _fits(name[1:], pattern[1:])

def _entries(folder, pattern):
    try:
        return [name for name in os.listdir(folder) if not name.startswith(".") and _fits(name, pattern)]
    except OSError:
        return []

def glob(pattern):
    """The paths that fit it; it begins with a slash."""
    found = [""]
    for part in pattern.split("/")[1:]:
        if any(sign in part for sign in "*?["):
            found = [path + "/" + name for path in found for name in _entries(path + "/", part)]
        else:
            found = [path + "/" + part for path in found]
    return [path for path in found if os.path.lexists(path)]
`,
  },
  {
    name: "spawned",
    text: `
def spawned(argv, writer=None):
    """The number of a program's process. It reads nothing, and writes to the descriptor."""
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)]
    if writer is not None:
        actions += [(os.POSIX_SPAWN_DUP2, writer, descriptor) for descriptor in (1, 2)]
    return os.posix_spawn(argv[0], argv, os.environ, file_actions=actions, setsigdef=[signal.SIGPIPE])
`,
  },
  {
    name: "output",
    text: `
def output(argv):
    reader, writer = os.pipe()
    child = spawned(argv, writer)
    os.close(writer)
    with open(reader, "rb") as file:
        data = file.read()
    os.waitpid(child, 0)
    return data
`,
  },
  {
    name: "dumps",
    text: `
def dumps(value):
    """JSON of numbers, lists and texts in which nothing has to be escaped."""
    if isinstance(value, dict):
        return "{%s}" % ", ".join('"%s": %s' % (name, dumps(one)) for name, one in value.items())
    if isinstance(value, list):
        return "[%s]" % ", ".join(map(dumps, value))
    return '"%s"' % value if isinstance(value, str) else str(value)
`,
  },
  {
    name: "request_url",
    text: String.raw`
def request_url(url, token, body=None):
    """Status and body of the response to a GET, or a POST with a body. @raises EOFError for an incomplete one."""
    address, _, path = url.partition("//")[2].partition("/")
    host, _, port = address.rpartition(":")
    head = ["%s /%s HTTP/1.1" % ("GET" if body is None else "POST", path), "Host: " + address, "Connection: close"]
    head += [] if token is None else ["Authorization: Bearer " + token]
    head += [] if body is None else ["Content-Type: text/plain", "Content-Length: %d" % len(body)]
    pieces = []
    with socket.create_connection((host, int(port)), 10) as client:
        client.sendall("\r\n".join(head + ["", ""]).encode() + (body or b""))
        while not pieces or pieces[-1]:
            pieces.append(client.recv(1 << 16))
    head, end, rest = b"".join(pieces).partition(b"\r\n\r\n")
    if not end:
        raise EOFError("no whole head")
    first, *fields = head.lower().split(b"\r\n")
    fields = dict(field.split(b": ", 1) for field in fields if b": " in field)
    if fields.get(b"transfer-encoding") == b"chunked":
        rest = _joined(rest)
    elif len(rest) < int(fields.get(b"content-length", b"0")):
        raise EOFError("no whole body")
    return int(first.split()[1]), rest

def _joined(rest):
    """The content of a body's chunks."""
    chunks = []
    while True:
        line, end, rest = rest.partition(b"\r\n")
        size = int(line.split(b";")[0], 16) if end else 0
        if not end or len(rest) < size + 2:
            raise EOFError("no whole chunk")
        if size == 0:
            return b"".join(chunks)
        chunks.append(rest[:size])
        rest = rest[size + 2:]
`,
  },
];
