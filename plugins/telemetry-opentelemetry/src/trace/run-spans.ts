import { Span, type SpanStart } from "./span.js";

/** Tool calls, waits and requests to the model that get a span of their own in one run. */
const maxSpans = 1_000;

/** Begins the spans below a run's own. */
export class RunSpans {
  #counted = 0;
  /** Spans beyond the limit. */
  dropped = 0;

  constructor(
    readonly trace: Pick<SpanStart, "traceId" | "flags" | "tracestate">,
    readonly root: Span,
    readonly now: () => number,
  ) {}

  begin(given: Pick<SpanStart, "name" | "kind" | "attributes">, below: Span): Span {
    const parent = { spanId: below.spanId, isRemote: false };
    return new Span({ ...given, ...this.trace, parent }, this.now);
  }

  /** Undefined beyond the limit: an agent can cause any number. */
  beginCounted(given: Pick<SpanStart, "name" | "kind" | "attributes">, below: Span): Span | undefined {
    this.#counted += 1;
    if (this.#counted <= maxSpans) return this.begin(given, below);
    this.dropped += 1;
    return undefined;
  }
}
