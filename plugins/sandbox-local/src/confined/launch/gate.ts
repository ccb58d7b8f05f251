import type { LoopbackForward } from "../loopback.js";
import { inside } from "./inside.js";

/** The descriptor that connects the runner with a jail's first program; closed before the payload starts. */
export const gateDescriptor = 3;

export type Relay =
  | { readonly kind: "none" }
  | { readonly kind: "socat"; readonly program: string }
  | { readonly kind: "node"; readonly program: string };

/**
 * The jail's first program, which is process 1 of its pid namespace. When the payload ends, everything left in the jail
 * ends with process 1, and bubblewrap reaps it. (bubblewrap's own process 1 would outlive bubblewrap if the runner is a
 * container's first process and doesn't reap orphans.)
 *
 * Its child reports its process number in the jail (so that the runner can inspect it while the relay starts), then
 * that everything is up, and becomes the payload only when the runner says so. A runner that died meanwhile never does.
 * The runner then closes its end: the descriptor that the first process keeps leads nowhere.
 */
export function gateScript(relay: Relay, forwards: readonly LoopbackForward[] = []): string {
  return [
    // The runner's mark, visible on the host only.
    "shift",
    'command -v -- "$1" >/dev/null || { echo missing >&3; exit 127; }',
    // A shell reports a child that ended by a signal; standard error belongs to the payload.
    "exec 4>&2 2>/dev/null",
    "(",
    "exec 2>&4 4>&-",
    "read -r _ambit _ambit_rest </proc/self/stat",
    'echo "$_ambit" >&3',
    ...(relay.kind === "none" ? [] : startRelay(relay, forwards)),
    "echo up >&3",
    "read -r _ambit <&3 || exit 125",
    "exec 3>&-",
    'exec "$@"',
    ")",
    "exit $?",
  ].join("\n");
}

function startRelay(relay: Exclude<Relay, { kind: "none" }>, forwards: readonly LoopbackForward[]): string[] {
  const channel = { address: inside.channelAddress, port: inside.port };
  const listeners = [channel, ...forwards];
  const commands =
    relay.kind === "socat"
      ? [
          socat(relay.program, channel, `UNIX-CONNECT:${inside.channel}`),
          ...forwards.map((forward) => socat(relay.program, forward, throughProxy(forward))),
        ]
      : [[relay.program, inside.relayProgram, ...forwards.map(authority)].join(" ")];
  return [
    // In a separate shell: the payload gets no child that it didn't start, and no variable of Ambit's. Without the
    // payload's variables, which must not change how these programs behave.
    "(",
    ...commands.map((command) => `/usr/bin/env -i ${command} </dev/null >/dev/null 2>&1 3>&- &`),
    // Nothing else runs in the jail's network yet, so its sockets are the listeners. Their number costs the kernel less
    // than the table of connections, for which it searches all of the host's.
    "tries=0",
    "while :; do",
    "  up=0",
    "  for file in /proc/net/sockstat /proc/net/sockstat6; do",
    "    while read -r kind inuse count rest; do",
    '      case "$kind $inuse" in "TCP: inuse" | "TCP6: inuse") up=$((up + count));; esac',
    "    done 2>/dev/null <$file",
    "  done",
    `  [ $up -lt ${listeners.length} ] || exit 0`,
    "  tries=$((tries + 1))",
    "  [ $tries -lt 100000 ] || exit 1",
    "  /usr/bin/sleep 0.001 2>/dev/null 3>&-",
    "done",
    ") || { echo relay >&3; exit 126; }",
  ];
}

/** nodelay: the end of a response in two pieces would wait 40 ms for the client's delayed ACK. */
function socat(program: string, { address, port }: LoopbackForward, to: string): string {
  const [kind, bind] = address.includes(":") ? ["TCP6", `[${address}]`] : ["TCP4", address];
  const listen = `${kind}-LISTEN:${port},bind=${bind},fork,reuseaddr,backlog=1024,nodelay`;
  // -t: a client that has sent everything may wait long for its response.
  return `${program} -t 3600 ${listen} ${to}`;
}

/** The proxy decides on it like on any other destination. */
function throughProxy(forward: LoopbackForward): string {
  return `PROXY:${inside.channelAddress}:${authority(forward)},proxyport=${inside.port}`;
}

function authority({ address, port }: LoopbackForward): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
