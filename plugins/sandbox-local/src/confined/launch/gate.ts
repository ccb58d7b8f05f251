import type { LoopbackForward } from "../loopback.js";
import { inside } from "./inside.js";

/** The descriptor over which the runner and a jail's first program talk; closed before the payload starts. */
export const gateDescriptor = 3;

export type Relay =
  | { readonly kind: "none" }
  | { readonly kind: "socat"; readonly program: string }
  | { readonly kind: "node"; readonly program: string };

/**
 * The jail's first program, and process number one of its pid namespace: what is left in the jail when the payload
 * ends, ends with it, and bubblewrap sees to its remains. (bubblewrap's own number one would outlive bubblewrap, for
 * a runner that is a container's first process and collects no strangers' children.)
 *
 * Its child says its own number in the jail (so that the runner can look at it while the relay starts), then that
 * all is up, and becomes the payload only when the runner says so. A runner that died meanwhile never does. The
 * runner then closes its end: the first process keeps a descriptor that leads nowhere.
 */
export function gateScript(relay: Relay, forwards: readonly LoopbackForward[] = []): string {
  return [
    // The runner's mark, for the host's eyes only.
    "shift",
    'command -v -- "$1" >/dev/null || { echo missing >&3; exit 127; }',
    // A shell says so when its child ends by a signal; the payload's standard error is the payload's.
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
  const tables = forwards.some(({ address }) => address.includes(":")) ? ["tcp", "tcp6"] : ["tcp"];
  const commands =
    relay.kind === "socat"
      ? [
          socat(relay.program, channel, `UNIX-CONNECT:${inside.channel}`),
          ...forwards.map((forward) => socat(relay.program, forward, throughProxy(forward))),
        ]
      : [[relay.program, inside.relayProgram, ...forwards.map(authority)].join(" ")];
  return [
    // In a shell of its own: the payload gets no child that it didn't start, and no variable of ours. Without the
    // payload's variables: what they make of a program is its own business.
    "(",
    ...commands.map((command) => `/usr/bin/env -i ${command} </dev/null >/dev/null 2>&1 3>&- &`),
    "tries=0",
    "while :; do",
    "  up=0",
    ...tables.flatMap((table) => [
      "  while read -r slot local remote state rest; do",
      `    case "$local $state" in ${listeners.map(listensAt).join("|")}) up=$((up + 1));; esac`,
      `  done </proc/net/${table}`,
    ]),
    `  [ $up -lt ${listeners.length} ] || exit 0`,
    "  tries=$((tries + 1))",
    "  [ $tries -lt 100000 ] || exit 1",
    "done",
    ") || { echo relay >&3; exit 126; }",
  ];
}

/** Nodelay: the end of an answer that comes in two pieces would wait for the client's delayed ACK, 40 ms. */
function socat(program: string, { address, port }: LoopbackForward, to: string): string {
  const [kind, bind] = address.includes(":") ? ["TCP6", `[${address}]`] : ["TCP4", address];
  const listen = `${kind}-LISTEN:${port},bind=${bind},fork,reuseaddr,backlog=1024,nodelay`;
  // -t: a client that has sent all may wait long for its answer.
  return `${program} -t 3600 ${listen} ${to}`;
}

/** The proxy decides on it as on any other destination. */
function throughProxy(forward: LoopbackForward): string {
  return `PROXY:${inside.channelAddress}:${authority(forward)},proxyport=${inside.port}`;
}

function authority({ address, port }: LoopbackForward): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** The address and state columns of a listening socket's row in `/proc/net`, quoted for a shell's pattern. */
function listensAt({ address, port }: LoopbackForward): string {
  const hexadecimal = (value: number) => value.toString(16).toUpperCase().padStart(2, "0");
  const bytes = address.includes(":")
    ? `${"0".repeat(24)}01000000`
    : address.split(".").map(Number).map(hexadecimal).reverse().join("");
  return `"${bytes}:${hexadecimal(port).padStart(4, "0")} 0A"`;
}
