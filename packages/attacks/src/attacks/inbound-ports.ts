import type { Duplex } from "node:stream";
import { messageOf, type Sandbox } from "@ambit/core/plugin";
import { endProcessesWith, freshNonce } from "../decoys/nonce.js";
import { commandOf, textOf, waitForLine } from "../programs/run-program.js";
import { type Attack, type AttackOutcome, blocked, notRun, reached, type Stage } from "./attack.js";

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

/** A server of the kit in a sandbox, on two ports of its loopback. */
interface ServerInside {
  readonly listed: number;
  readonly unlisted: number;
  /** What it answers. */
  readonly answer: string;
}

interface ServerOptions {
  /** Default: something that nothing else says. */
  readonly answer?: string;
  /** A port that it must not use. */
  readonly not?: number;
  /** Whether it tries to outlive its sandbox. Default false. */
  readonly detached?: boolean;
}

/** Works with a server inside, and ends it. @throws Error if it doesn't start */
export async function withServer<Result>(
  { spec, decoys }: Pick<Stage, "spec" | "decoys">,
  sandbox: Sandbox,
  work: (server: ServerInside) => Promise<Result>,
  { answer = freshNonce(), not, detached = false }: ServerOptions = {},
): Promise<Result> {
  const mark = freshNonce();
  const ports = decoys.freePorts.filter((port) => port !== not);
  const parameters = { mark, ports, listed: spec.boundary.inbound ?? [], detached };
  const env = { DECOY_ANSWER: answer };
  const started = await sandbox.spawn(commandOf(serverProgram, parameters, { env, role: "agent" }));
  try {
    const line = await waitForLine(started.stdout, "LISTENS");
    const [listed, unlisted] = (line ?? "").split(" ").slice(1).map(Number);
    if (listed === undefined || unlisted === undefined)
      throw new Error(`a server inside ended at once: ${(await textOf(started.stderr)).slice(-200)}`);
    return await work({ listed, unlisted, answer });
  } finally {
    await started.kill();
    endProcessesWith(mark);
  }
}

/** Milliseconds that a connection, and an answer on it, may take on a busy machine. */
const patienceMs = 5_000;
/** Characters of an answer that are looked at. */
const maxCharacters = 65_536;

/** A connection to a port inside, or why nothing got in. @throws Error for a sandbox that carries none. */
export async function enter(sandbox: Sandbox, port: number): Promise<Duplex | string> {
  if (sandbox.connect === undefined) throw new Error("the sandbox has no connect()");
  const entering = sandbox.connect(port);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no connection within ${patienceMs / 1_000} s`), patienceMs);
  });
  try {
    const entered = await Promise.race([entering, late]);
    if (typeof entered === "string") void entering.then((connection) => connection.destroy()).catch(() => {});
    else entered.on("error", () => entered.destroy());
    return entered;
  } catch (error) {
    return messageOf(error);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether the other side of a connection answers a request with these words. */
export function isAnswered(connection: Duplex, words: string): Promise<boolean> {
  return new Promise((resolve) => {
    let heard = "";
    const settle = (isHeard: boolean) => {
      clearTimeout(timer);
      connection.off("data", onData).off("end", onEnd).off("close", onEnd);
      resolve(isHeard);
    };
    const onData = (chunk: Buffer) => {
      heard += chunk.toString("latin1");
      if (heard.includes(words)) settle(true);
      else if (heard.length > maxCharacters) settle(false);
    };
    const onEnd = () => settle(false);
    const timer = setTimeout(onEnd, patienceMs);
    if (connection.destroyed || connection.readableEnded) return onEnd();
    connection.on("data", onData).on("end", onEnd).on("close", onEnd);
    connection.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  });
}

/** What came of a connection to a port: the words, or why they weren't heard. */
export async function tryPort(
  sandbox: Sandbox,
  port: number,
  words: string,
): Promise<{ readonly isReached: boolean; readonly detail: string }> {
  const connection = await enter(sandbox, port);
  if (typeof connection === "string") return { isReached: false, detail: connection };
  try {
    const isReached = await isAnswered(connection, words);
    return { isReached, detail: isReached ? `port ${port} answered` : `port ${port} said something else` };
  } finally {
    connection.destroy();
  }
}

const capability = "inbound.ports";

export const inboundPorts = [
  {
    id: `${capability}/host-loopback`,
    capability,
    title: "reach a server on the host's loopback by a listed port",
    perform: (stage) =>
      withReachedServer(stage, ({ sandbox }) =>
        outcomeAt(sandbox, stage.decoys.onLoopback.port, stage.decoys.secret),
      ),
  },
  {
    id: `${capability}/unlisted-port`,
    capability,
    stoppedBy: ["inbound port list"],
    title: "reach a server inside on a port that isn't listed",
    perform: (stage) =>
      withReachedServer(stage, ({ sandbox }, { unlisted, answer }) => outcomeAt(sandbox, unlisted, answer)),
  },
  {
    id: `${capability}/another-session`,
    capability,
    title: "reach another session's server by a port that is listed for both",
    perform: async (stage) => {
      const other = await stage.openAnother();
      const attempt = ({ listed, answer }: ServerInside) =>
        withReachedServer(stage, ({ sandbox }) => outcomeAt(sandbox, listed, answer), listed);
      return withServer(stage, other, attempt, { answer: stage.decoys.secret });
    },
  },
  {
    id: `${capability}/outlive-close`,
    capability,
    stoppedBy: ["inbound relay", "pid namespace"],
    title: "reach a server inside when its sandbox has closed",
    perform: async (stage) => {
      const other = await stage.openAnother();
      const attempt = (server: ServerInside) => afterClose(other, server);
      return withServer(stage, other, attempt, { detached: true });
    },
  },
] as const satisfies readonly Attack[];

/** With a server that is reached on a listed port: where nothing gets in, a refusal says nothing. */
function withReachedServer(
  stage: Stage,
  attempt: (stage: Stage, server: ServerInside) => Promise<AttackOutcome>,
  not?: number,
): Promise<AttackOutcome> {
  const work = async (server: ServerInside) => {
    const { isReached, detail } = await tryPort(stage.sandbox, server.listed, server.answer);
    return isReached ? attempt(stage, server) : notRun(`the listed port isn't reached either: ${detail}`);
  };
  return withServer(stage, stage.sandbox, work, not === undefined ? {} : { not });
}

async function outcomeAt(sandbox: Sandbox, port: number, words: string): Promise<AttackOutcome> {
  const { isReached, detail } = await tryPort(sandbox, port, words);
  return isReached ? reached(detail) : blocked(detail);
}

/** By a connection from before, which must end, and by a new one. */
async function afterClose(sandbox: Sandbox, { listed, answer }: ServerInside): Promise<AttackOutcome> {
  const connection = await enter(sandbox, listed);
  if (typeof connection === "string") return notRun(`nothing got in before either: ${connection}`);
  try {
    if (!(await isAnswered(connection, answer))) return notRun("nothing answered before either");
    await sandbox.close();
    if (await isAnswered(connection, answer)) return reached("an earlier connection still answers");
    if (!connection.destroyed && !connection.readableEnded) return reached("an earlier connection is open");
    return await outcomeAt(sandbox, listed, answer);
  } finally {
    connection.destroy();
  }
}
