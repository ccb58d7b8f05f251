/**
 * Listens on one of `ports`, the first that is free, and on one that isn't listed. It answers whatever it receives, on
 * each connection as often as it receives something. `detached`: it has left its parent, group and session.
 */
export const serverProgram = `
import threading
answer = os.environ["DECOY_ANSWER"].encode()
def listening(port):
    server = socket.socket()
    server.bind(("127.0.0.1", port))
    server.listen(16)
    return server
def first_free():
    for port in P["ports"]:
        try:
            return listening(port)
        except OSError:
            continue
    raise OSError(errno.EADDRINUSE, "no listed port is free")
def not_listed():
    taken = []
    while True:
        server = listening(0)
        if server.getsockname()[1] not in P["listed"]:
            return server
        taken.append(server)
def answers(client):
    try:
        while client.recv(4096):
            client.sendall(answer)
    except OSError:
        pass
def serve(server):
    while True:
        client, _ = server.accept()
        threading.Thread(target=answers, args=(client,), daemon=True).start()
def serve_both():
    threading.Thread(target=serve, args=(other,), daemon=True).start()
    serve(server)
def detach():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open("/dev/null", os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            signal.alarm(120)
            serve_both()
        os._exit(0)
    os.wait()
server, other = first_free(), not_listed()
if P["detached"]:
    detach()
else:
    threading.Thread(target=serve_both, daemon=True).start()
say("LISTENS", "%d %d" % (server.getsockname()[1], other.getsockname()[1]))
if P["detached"]:
    time.sleep(120)  # Not until its input ends: that comes with the end of its launcher.
sys.stdin.read()
`;
