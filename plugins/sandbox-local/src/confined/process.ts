import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { Evidence, Exit, Process } from "@ambit/core/plugin";
import type { JailInbound } from "../expose/inbound.js";
import { pipesOf } from "../process/pipes.js";
import { descendants, endProcess, type HostProcess, hasEnded, signalProcess } from "./launch/host-process.js";
import type { Launched } from "./launch/launch.js";

/** Milliseconds between SIGTERM and SIGKILL. */
const politeMs = 2_000;

/** One jail: the payload, and with it everything in its pid namespace. */
export class ConfinedProcess implements Process {
  readonly stdin: Process["stdin"];
  readonly stdout: Process["stdout"];
  readonly stderr: Process["stderr"];
  readonly evidence: Evidence;
  readonly exit: Promise<Exit>;
  /** Its way in, where the boundary has one: closed when the jail has ended. */
  readonly inbound: JailInbound | undefined;
  readonly #init: HostProcess;
  readonly #payload: HostProcess;
  readonly #relays: number;
  #asked = false;
  #killed = false;

  /** @param relays the number of processes that are the jail's own way out. */
  constructor(
    { child, init, payload, evidence }: Launched,
    {
      relays,
      inbound,
      signal,
    }: {
      readonly relays: number;
      readonly inbound: JailInbound | undefined;
      readonly signal: AbortSignal | undefined;
    },
  ) {
    this.#init = init;
    this.#relays = relays;
    this.inbound = inbound;
    this.#payload = payload;
    this.evidence = evidence;
    const { stdin, stdout, stderr } = pipesOf(child);
    this.stdin = stdin;
    this.stdout = stdout;
    this.stderr = stderr;
    const onAbort = () => this.#end();
    signal?.addEventListener("abort", onAbort, { once: true });
    const ended =
      child.exitCode !== null || child.signalCode !== null
        ? Promise.resolve({ code: child.exitCode, signal: child.signalCode })
        : new Promise<Exit>((resolve) => child.once("exit", (code, name) => resolve({ code, signal: name })));
    this.exit = ended.then(async (exit) => {
      signal?.removeEventListener("abort", onAbort);
      // bubblewrap ends after the jail's first process; if bubblewrap itself is killed, that process follows.
      endProcess(init);
      await untilEnded(init);
      await inbound?.close();
      if (this.#killed) return { code: null, signal: "SIGKILL" };
      return this.#asked && exit.code === 128 + constants.signals.SIGTERM
        ? { code: null, signal: "SIGTERM" }
        : exit;
    });
    if (signal?.aborted) onAbort();
  }

  /** The number of live processes in the jail, without its own. */
  processes(): number {
    return Math.max(0, descendants(this.#init) - this.#relays);
  }

  async kill(name: "SIGTERM" | "SIGKILL" = "SIGKILL"): Promise<void> {
    if (name === "SIGTERM") {
      this.#asked = true;
      signalProcess(this.#payload, "SIGTERM");
      await Promise.race([this.exit, delay(politeMs, undefined, { ref: false })]);
    }
    this.#end();
    await this.exit;
  }

  #end(): void {
    this.#killed ||= !hasEnded(this.#init);
    endProcess(this.#init);
  }
}

async function untilEnded(init: HostProcess): Promise<void> {
  while (!hasEnded(init)) await delay(2);
}
