import type { LoopbackForward } from "../loopback.js";
import { inside } from "./inside.js";

/** The descriptor that connects the runner with a jail's first program; closed before the payload starts. */
export const gateDescriptor = 3;

/** The program that runs one of the relays in `inside`. */
export interface Relay {
  readonly kind: "perl" | "node";
  readonly program: string;
}

/** A jail's own way out: its relay, and what it would inherit. */
export interface WayOut {
  readonly relay: Relay;
  readonly forwards: readonly LoopbackForward[];
  /** Whether it also lets the runner's connections in. */
  readonly isInbound: boolean;
  /** Names of the payload's variables: a shell's names only, as `jailEnvironment` has checked. */
  readonly variables: readonly string[];
}

/**
 * The jail's first program, which is process 1 of its pid namespace. When the payload ends, everything left in the jail
 * ends with process 1, and bubblewrap reaps it. (bubblewrap's own process 1 would outlive bubblewrap if the runner is a
 * container's first process and doesn't reap orphans.)
 *
 * Its child reports its process number in the jail (so that the runner can inspect it while the relay starts), then
 * that everything is up, and becomes the payload only when the runner says so. A runner that died meanwhile never does.
 * The runner then closes its end: the descriptor that the first process keeps leads nowhere.
 */
export function gateScript(wayOut: WayOut | undefined): string {
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
    ...(wayOut === undefined ? [] : [startRelay(wayOut)]),
    "echo up >&3",
    "read -r _ambit <&3 || exit 125",
    "exec 3>&-",
    'exec "$@"',
    ")",
    "exit $?",
  ].join("\n");
}

/** Bash gives them a value of its own, exports none of them, and ends if one is removed. */
const readOnly = new Set(["BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"]);

/**
 * In a shell of its own: the payload gets no child that it didn't start. Without the payload's variables, which must not
 * change how the relay behaves. It says `up` on descriptor 4 and closes that once all its ports listen.
 */
function startRelay({ relay, forwards, isInbound, variables }: WayOut): string {
  const removed = [...variables.filter((name) => !readOnly.has(name)), "PWD", "OLDPWD"];
  const targets = [...forwards.map(authority), ...(isInbound ? ["inbound"] : [])];
  const command = [relay.program, inside.relayProgram, ...targets].join(" ");
  const started = [
    `unset -v ${removed.join(" ")}`,
    "exec </dev/null 3>&-",
    `${command} 4>&1 >/dev/null 2>&1 &`,
  ];
  return `[ "$(${started.join("; ")})" = up ] || { echo relay >&3; exit 126; }`;
}

function authority({ address, port }: LoopbackForward): string {
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}
