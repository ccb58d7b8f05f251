import type { PipeSignal } from "./frame.js";
import type { Transport } from "./transport.js";

/** The current destination of what a transport sends. Takes it at once and keeps its order. */
export interface PipeSink<Written> {
  write(written: Written): void;
}

/** What arrives on a pipe. */
export type PipeEvent =
  | { readonly kind: "signal"; readonly signal: PipeSignal }
  /** A frame, or a part of one. @throws FrameMissing, TransportBroken, or what a listener throws */
  | { readonly kind: "content"; accept(): void }
  /** Not of this protocol: an echo of our own line, a shell's message, or a truncated line. */
  | { readonly kind: "noise"; readonly text: string };

/** Reads one pipe, whose pieces may begin and end anywhere. */
export interface PipeReader {
  /** @throws TransportBroken for what isn't of this protocol and can't be skipped. */
  push(bytes: Uint8Array): readonly PipeEvent[];
}

/** A transport that survives its pipes: what the other side has no sign of is sent again over the next one. */
export interface ResumableTransport<Written> extends Transport {
  /**
   * How much has arrived, in the transport's own unit. A greeting contains it, so that the other side continues after it.
   */
  readonly received: number;
  /**
   * Continues over another pipe, after what the other side has received.
   * @throws TransportBroken
   */
  attach(sink: PipeSink<Written>, peerReceived: number): void;
  /** The pipe is lost. What is sent later waits for the next one. */
  detach(sink: PipeSink<Written>): void;
  /** @throws TransportBroken */
  acknowledged(received: number): void;
  /** Permanent: nothing is buffered any more, and all waits end. */
  close(): void;
}

/** How a transport appears on a pipe: as lines of text, or as bytes. */
export interface PipeFormat<Written> {
  readonly transport: ResumableTransport<Written>;
  /** Begins again with a new transport, for another owner: what was buffered for the earlier one is lost. */
  renew(): void;
  newReader(): PipeReader;
  signal(signal: PipeSignal): Written;
}
