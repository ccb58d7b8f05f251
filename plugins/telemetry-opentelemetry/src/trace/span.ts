import { randomBytes } from "node:crypto";
import type { RemoteSpan } from "@ambit/core/plugin";

export type AttributeValue = string | number | boolean | readonly string[];

/** What OpenTelemetry calls a span event. */
interface SpanEvent {
  readonly name: string;
  /** Milliseconds since the epoch, with a fraction. */
  readonly at: number;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
}

/** A span that has ended. */
export interface EndedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** W3C trace flags. */
  readonly flags: number;
  /** W3C trace state of the caller. */
  readonly tracestate: string | undefined;
  readonly parent: SpanParent | undefined;
  readonly name: string;
  readonly kind: "internal" | "client";
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  readonly events: readonly SpanEvent[];
  readonly droppedEvents: number;
  /** Spans of other traces that it belongs to. */
  readonly links: readonly RemoteSpan[];
  /** Why it failed, in one sentence; undefined when it didn't. */
  readonly error: string | undefined;
}

interface SpanParent {
  readonly spanId: string;
  /** Whether it is the caller's. */
  readonly isRemote: boolean;
}

interface SpanStart {
  readonly traceId: string;
  readonly flags: number;
  readonly tracestate: string | undefined;
  readonly parent: SpanParent | undefined;
  readonly name: string;
  readonly kind?: "internal" | "client";
  readonly attributes?: Readonly<Record<string, AttributeValue | undefined>>;
  /** Of a span that another process began. Default: a new id. */
  readonly spanId?: string;
  /** Milliseconds since the epoch. Default: now. */
  readonly start?: number;
}

/** Characters of one attribute; the rest is cut. */
const maxTextLength = 16_384;
const maxEvents = 128;
const maxLinks = 32;

/** A span under way. */
export class Span {
  readonly spanId: string;
  readonly start: number;
  readonly #attributes: Record<string, AttributeValue> = {};
  readonly #events: SpanEvent[] = [];
  readonly #links: RemoteSpan[] = [];
  #droppedEvents = 0;
  #error: string | undefined;
  #name: string;

  constructor(
    readonly given: SpanStart,
    readonly now: () => number,
  ) {
    this.spanId = given.spanId ?? randomBytes(8).toString("hex");
    this.start = given.start ?? now();
    this.#name = given.name;
    this.set(given.attributes ?? {});
  }

  /** To send on (W3C Trace Context). */
  get traceparent(): string {
    const { traceId, flags } = this.given;
    return `00-${traceId}-${this.spanId}-${flags.toString(16).padStart(2, "0")}`;
  }

  get attributes(): Readonly<Record<string, AttributeValue>> {
    return this.#attributes;
  }

  rename(name: string): void {
    this.#name = name;
  }

  /** Leaves out what is undefined. */
  set(attributes: Readonly<Record<string, AttributeValue | undefined>>): void {
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== undefined) this.#attributes[name] = shortened(value);
    }
  }

  happened(name: string, attributes: Readonly<Record<string, AttributeValue | undefined>> = {}): void {
    if (this.#events.length >= maxEvents) {
      this.#droppedEvents += 1;
      return;
    }
    const plain = Object.entries(attributes).flatMap(([key, value]) =>
      value === undefined ? [] : [[key, shortened(value)] as const],
    );
    this.#events.push({ name, at: this.now(), attributes: Object.fromEntries(plain) });
  }

  link(span: RemoteSpan): void {
    if (this.#links.length < maxLinks) this.#links.push(span);
  }

  /** @param type a short word of the failure's kind (`error.type`). */
  failed(type: string, message: string): void {
    this.#error = shortened(message).toString();
    this.set({ "error.type": type });
  }

  end(): EndedSpan {
    const { traceId, flags, tracestate, parent, kind = "internal" } = this.given;
    return {
      traceId,
      flags,
      tracestate,
      parent,
      kind,
      spanId: this.spanId,
      name: this.#name,
      start: this.start,
      end: this.now(),
      attributes: this.#attributes,
      events: this.#events,
      droppedEvents: this.#droppedEvents,
      links: this.#links,
      error: this.#error,
    };
  }
}

function shortened<Value extends AttributeValue>(value: Value): Value | string {
  return typeof value === "string" && value.length > maxTextLength ? value.slice(0, maxTextLength) : value;
}

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
