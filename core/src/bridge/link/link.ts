import { type Frame, frameLine, type Line, type Side, signalLine } from "./frame.js";

/** Frames, and bytes of them, after which an acknowledgement no longer waits. */
const framesUnacknowledged = 64;
const bytesUnacknowledged = 64 * 1024;
/** Milliseconds that it waits for more at most. */
const acknowledgementMs = 50;

/** Where lines go at the moment. Takes them at once and keeps their order. */
export interface Wire {
  write(lines: string): void;
}

/** The other side has lost what it had acknowledged, or speaks another protocol: no pipe can mend this. */
export class LinkBroken extends Error {}

/** A frame is missing: this pipe is no good, the next one will bring it. */
export class FrameMissing extends Error {}

/**
 * A sequence of frames that survives its pipes: each is numbered, kept until the other side has acknowledged it, and
 * sent again over the next pipe. Whoever sends is kept in bounds by the channels' windows, and so is what is kept.
 */
export class Link {
  readonly #side: Side;
  readonly #deliver: (frame: Frame) => void;
  /** Lines not acknowledged yet; the first is number `#acknowledged + 1`. */
  #journal: string[] = [];
  #acknowledged = 0;
  #received = 0;
  #wire: Wire | undefined;
  #framesOwed = 0;
  #bytesOwed = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(side: Side, deliver: (frame: Frame) => void) {
    this.#side = side;
    this.#deliver = deliver;
  }

  /** How many frames have arrived: what a greeting says, so that the other side begins with the next. */
  get received(): number {
    return this.#received;
  }

  /** Frames that are kept. */
  get kept(): number {
    return this.#journal.length;
  }

  send(frame: Frame): void {
    const line = frameLine(this.#side, this.#acknowledged + this.#journal.length + 1, frame);
    this.#journal.push(line);
    this.#wire?.write(line);
  }

  /**
   * Goes on over another pipe, from the frame after those that the other side has.
   * @throws LinkBroken
   */
  attach(wire: Wire, peerReceived: number): void {
    if (peerReceived < this.#acknowledged || peerReceived > this.#acknowledged + this.#journal.length) {
      throw new LinkBroken(`The other half has ${peerReceived} frames, which can't be`);
    }
    this.#release(peerReceived);
    this.#wire = wire;
    if (this.#journal.length > 0) wire.write(this.#journal.join(""));
    this.#acknowledge();
  }

  /** The pipe is gone. What is sent from now on waits for the next. */
  detach(wire: Wire): void {
    if (this.#wire === wire) this.#wire = undefined;
  }

  /** @throws FrameMissing, LinkBroken */
  accept(line: Extract<Line, { kind: "frame" }>, length: number): void {
    if (line.number <= this.#received) return;
    if (line.number !== this.#received + 1) {
      throw new FrameMissing(`Frame ${line.number} came after ${this.#received}`);
    }
    this.#received = line.number;
    this.#framesOwed += 1;
    this.#bytesOwed += length;
    if (this.#framesOwed >= framesUnacknowledged || this.#bytesOwed >= bytesUnacknowledged) {
      this.#acknowledge();
    } else if (this.#timer === undefined) {
      this.#timer = setTimeout(() => this.#acknowledge(), acknowledgementMs);
      this.#timer.unref();
    }
    this.#deliver(line.frame);
  }

  /** @throws LinkBroken */
  acknowledged(received: number): void {
    if (received > this.#acknowledged + this.#journal.length) {
      throw new LinkBroken(`The other half acknowledges frame ${received}, which wasn't sent`);
    }
    this.#release(received);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#wire = undefined;
    this.#journal = [];
  }

  #release(received: number): void {
    const count = received - this.#acknowledged;
    if (count <= 0) return;
    this.#journal.splice(0, count);
    this.#acknowledged = received;
  }

  #acknowledge(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#framesOwed === 0 || this.#wire === undefined) return;
    this.#framesOwed = 0;
    this.#bytesOwed = 0;
    this.#wire.write(signalLine(this.#side, ["ack", this.#received]));
  }
}
