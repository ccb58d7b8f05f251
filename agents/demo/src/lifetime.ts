/**
 * When this process ends, and what ends with it.
 *
 * A well-behaved agent exits on the end of its input and on SIGTERM, and ends its commands too. `deaf` permanently
 * turns all of that off.
 */
export class Lifetime {
  readonly #groups = new Set<number>();
  #deaf = false;

  constructor() {
    for (const [signal, code] of [
      ["SIGTERM", 143],
      ["SIGINT", 130],
      ["SIGHUP", 129],
    ] as const) {
      process.on(signal, () => this.end(code));
    }
  }

  get deaf(): boolean {
    return this.#deaf;
  }

  /** From now on only SIGKILL ends this process. */
  becomeDeaf(): void {
    this.#deaf = true;
    // Without a timer the event loop would end after stdin has ended.
    setInterval(() => undefined, 60_000);
  }

  /** Records a child that leads a process group; call the returned function when the group is gone. */
  adopt(groupLeader: number): () => void {
    this.#groups.add(groupLeader);
    return () => this.#groups.delete(groupLeader);
  }

  /** Ends the process with its commands, unless it is deaf. */
  end(code: number): void {
    if (this.#deaf) return;
    for (const leader of this.#groups) killGroup(leader);
    process.exit(code);
  }
}

/** Kills a process group; one that has already ended is no error. */
export function killGroup(leader: number): void {
  try {
    process.kill(-leader, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
