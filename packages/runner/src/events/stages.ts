import type { AgentEvent, StageName, TimedStage } from "@ambit/core/contract";

/** Milliseconds from which on a reader learns what the run is busy with: less doesn't feel like waiting. */
const noticeableMs = 1_000;
/** Requests to the model that are remembered. */
const maxModelRequests = 200;

/** How far a stage has got. */
export interface StageProgress {
  /** The index of the request's source that is fetched. */
  readonly source: number;
  /** Of what is fetched of it, from 0 to 100. */
  readonly percent: number;
}

/**
 * When each stage of a run began and ended. While the run prepares or ends for more than a second, it says so in events: a run
 * that is quick has none of them. During its turn, the agent's own events show that it goes on.
 */
export class RunStages {
  readonly #ended: TimedStage[] = [];
  #modelRequests = 0;
  #current: { readonly name: StageName; readonly beginning: Moment } | undefined;
  #notice: NodeJS.Timeout | undefined;
  #isSlow = false;
  /** When the latest notice was sent, by `performance.now()`. */
  #toldAtMs = 0;

  constructor(readonly emit: (event: AgentEvent) => void) {}

  /** All that have ended, in that order. */
  get ended(): readonly TimedStage[] {
    return this.#ended;
  }

  enter(name: StageName): void {
    this.#endCurrent();
    this.#current = { name, beginning: now() };
    if (name === "streaming") this.#beQuick();
    else if (this.#isSlow) this.#tell();
    else
      this.#notice ??= setTimeout(() => {
        this.#isSlow = true;
        this.#tell();
      }, noticeableMs);
  }

  /** The stage that is under way got further. */
  advance(progress: StageProgress): void {
    if (this.#isSlow && performance.now() - this.#toldAtMs >= noticeableMs) this.#tell(progress);
  }

  /** A request to the model begins. @returns what to call at its end */
  askModel(): () => void {
    const beginning = now();
    return () => {
      if (this.#modelRequests === maxModelRequests)
        this.#ended.splice(
          this.#ended.findIndex(({ name }) => name === "model"),
          1,
        );
      else this.#modelRequests += 1;
      this.#ended.push(timed("model", beginning));
    };
  }

  /** The run ends. */
  end(): void {
    this.#endCurrent();
    this.#beQuick();
  }

  #endCurrent(): void {
    if (this.#current !== undefined) this.#ended.push(timed(this.#current.name, this.#current.beginning));
    this.#current = undefined;
  }

  #beQuick(): void {
    clearTimeout(this.#notice);
    this.#notice = undefined;
    this.#isSlow = false;
  }

  #tell(progress?: StageProgress): void {
    if (this.#current === undefined) return;
    this.#toldAtMs = performance.now();
    const { name: stage, beginning } = this.#current;
    const data = { stage, at: beginning.at, ...progress };
    this.emit({ type: "data", name: "stage", data, transient: true });
  }
}

/** The same moment by two clocks: one may be set meanwhile, and the other has no date. */
interface Moment {
  /** Its date and time in ISO 8601. */
  readonly at: string;
  /** By `performance.now()`. */
  readonly monotonicMs: number;
}

function now(): Moment {
  return { at: new Date().toISOString(), monotonicMs: performance.now() };
}

function timed(name: TimedStage["name"], { at, monotonicMs }: Moment): TimedStage {
  return { name, at, durationMs: Math.floor(performance.now() - monotonicMs) };
}
