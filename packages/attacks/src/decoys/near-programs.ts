import { proxyProgram } from "../programs/proxy-program.js";

/** Dials each target directly over TCP and UDP, and through every proxy that can be found. */
export const dialProgram = `${proxyProgram}
def by_tcp(host, port):
    with socket.create_connection((host, port), timeout=2) as client:
        client.send(request(host.encode(), port))
        return leaks(everything(client))
def by_udp(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(2)
        client.connect((host, port))
        client.send(P["nonce"].encode())
        return leaks(client.recv(4096))
def connected(host, port):
    socket.create_connection((host, port), timeout=2).close()
    return "connected"
for target in P["targets"]:
    if "beyond" in target:
        far = target["beyond"]
        attempt("TCP " + far["host"], lambda: connected(far["host"], far["port"]))
        continue
    host = target["host"]
    attempt("TCP " + host, lambda: by_tcp(host, target["tcp"]))
    attempt("UDP " + host, lambda: by_udp(host, target["udp"]))
    for proxy in proxies():
        attempt("CONNECT " + host, lambda: leaks(by_connect(proxy, host.encode(), target["tcp"])))
        attempt("SOCKS " + host, lambda: leaks(by_socks(proxy, host.encode(), target["tcp"])))
`;

/** Answers with the secret over TCP and UDP at every address of its sandbox, which it reports. */
export const peerProgram = `
import threading, fcntl
secret = os.environ["DECOY_SECRET"].encode()
stream = socket.socket()
stream.bind(("0.0.0.0", 0))
stream.listen(16)
datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagram.bind(("0.0.0.0", 0))
def streams():
    while True:
        client, _ = stream.accept()
        client.sendall(secret)
        client.close()
def datagrams():
    while True:
        _, sender = datagram.recvfrom(2048)
        datagram.sendto(secret, sender)
for serve in (streams, datagrams):
    threading.Thread(target=serve, daemon=True).start()
found = []
for _, name in socket.if_nameindex():
    if name == "lo":
        continue
    try:
        answer = fcntl.ioctl(datagram.fileno(), 0x8915, struct.pack("256s", name.encode()))
    except OSError:
        continue  # It has no address.
    found.append({"host": socket.inet_ntoa(answer[20:24]), "tcp": stream.getsockname()[1], "udp": datagram.getsockname()[1]})
print(json.dumps(found), flush=True)
sys.stdin.read()
`;
