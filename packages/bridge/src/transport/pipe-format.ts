import type { PipeSignal } from "./frame.js";
import type { ReliableTransport } from "./reliable-transport.js";

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

/** How a transport appears on a pipe: as lines of text, or as bytes. */
export interface PipeFormat<Written> {
  readonly transport: ReliableTransport<Written>;
  /** Begins again with a new transport, for another owner: what was buffered for the earlier one is lost. */
  renew(): void;
  newReader(): PipeReader;
  signal(signal: PipeSignal): Written;
}
