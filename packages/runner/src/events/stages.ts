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
  #current: { readonly name: StageName; readonly beganAt: number } | undefined;
  #notice: NodeJS.Timeout | undefined;
  #isSlow = false;
  #toldAt = 0;

  constructor(readonly emit: (event: AgentEvent) => void) {}

  /** All that have ended, in that order. */
  get ended(): readonly TimedStage[] {
    return this.#ended;
  }

  enter(name: StageName): void {
    this.#endCurrent();
    this.#current = { name, beganAt: Date.now() };
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
    if (this.#isSlow && Date.now() - this.#toldAt >= noticeableMs) this.#tell(progress);
  }

  /** A request to the model begins. @returns what to call at its end */
  askModel(): () => void {
    const beganAt = Date.now();
    return () => {
      if (this.#modelRequests === maxModelRequests)
        this.#ended.splice(
          this.#ended.findIndex(({ name }) => name === "model"),
          1,
        );
      else this.#modelRequests += 1;
      this.#ended.push(timed("model", beganAt));
    };
  }

  /** The run ends. */
  end(): void {
    this.#endCurrent();
    this.#beQuick();
  }

  #endCurrent(): void {
    if (this.#current !== undefined) this.#ended.push(timed(this.#current.name, this.#current.beganAt));
    this.#current = undefined;
  }

  #beQuick(): void {
    clearTimeout(this.#notice);
    this.#notice = undefined;
    this.#isSlow = false;
  }

  #tell(progress?: StageProgress): void {
    if (this.#current === undefined) return;
    this.#toldAt = Date.now();
    const { name: stage, beganAt } = this.#current;
    const data = { stage, at: new Date(beganAt).toISOString(), ...progress };
    this.emit({ type: "data", name: "stage", data, transient: true });
  }
}

function timed(name: TimedStage["name"], beganAt: number): TimedStage {
  // The clock may be set back.
  return { name, at: new Date(beganAt).toISOString(), durationMs: Math.max(0, Date.now() - beganAt) };
}
