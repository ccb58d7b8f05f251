import { cut } from "./layout.js";

/** Milliseconds of silence after which a step is shown. */
const patienceMs = 1_000;

/** Milliseconds between two pictures of the spinner. */
const frameMs = 100;

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"] as const;

type Output = Pick<NodeJS.WriteStream, "write" | "isTTY" | "columns">;

interface Clock {
  now(): number;
  /** Calls back until what it returned is called. */
  every(ms: number, callback: () => void): () => void;
}

const realClock: Clock = {
  now: () => performance.now(),
  every: (ms, callback) => {
    const timer = setInterval(callback, ms);
    timer.unref();
    return () => clearInterval(timer);
  },
};

/**
 * What a command does while it prints nothing, on stderr: at a terminal one line with a spinner and the seconds so far;
 * elsewhere one line for each step that takes longer than a second.
 */
export class Progress {
  #step = "";
  #detail = "";
  #since = 0;
  #frame = 0;
  #isDrawn = false;
  #isWritten = false;
  #stop: (() => void) | undefined;

  constructor(
    readonly output: Output = process.stderr,
    readonly clock: Clock = realClock,
  ) {}

  /** Begins a step, which ends the one before. The seconds count from the first step of the same task. */
  step(text: string): void {
    if (this.#stop === undefined) {
      this.#since = this.clock.now();
      this.#stop = this.clock.every(frameMs, () => this.#tick());
    }
    this.#step = text;
    this.#detail = "";
    this.#isWritten = false;
    if (this.#isDrawn) this.#draw();
  }

  /** What the step does at the moment: shown at a terminal only. */
  detail(text: string): void {
    this.#detail = ` · ${text}`;
    if (this.#isDrawn) this.#draw();
  }

  /** Removes the spinner, so that something else can be printed. The task goes on with the next `step`. */
  clear(): void {
    if (this.#isDrawn) this.output.write("\r\u001b[K");
    this.#isDrawn = false;
  }

  /** The task is over. */
  end(): void {
    this.#stop?.();
    this.#stop = undefined;
    this.clear();
  }

  #tick(): void {
    const elapsedMs = this.clock.now() - this.#since;
    if (elapsedMs < patienceMs) return;
    if (this.#isSpinner) this.#draw();
    else if (!this.#isWritten) {
      this.#isWritten = true;
      this.output.write(`${this.#step} …\n`);
    }
  }

  get #isSpinner(): boolean {
    return this.output.isTTY === true && process.env.TERM !== "dumb";
  }

  #draw(): void {
    this.#frame = (this.#frame + 1) % frames.length;
    const seconds = Math.floor((this.clock.now() - this.#since) / 1_000);
    const line = `${frames[this.#frame]} ${this.#step}${this.#detail} · ${seconds} s`;
    // A line that wraps couldn't be removed.
    this.output.write(`\r\u001b[K${cut(line, (this.output.columns || 80) - 1)}`);
    this.#isDrawn = true;
  }
}
