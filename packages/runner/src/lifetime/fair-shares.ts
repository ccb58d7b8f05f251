/** What many share, so that none takes all of it: slots for work, entries of projects, the memory of the process. */

import { totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";
import { AtCapacity } from "@ambit/core";
import { type Log, unlessAborted } from "@ambit/core/plugin";

interface FairLimits {
  /** Slots in all. */
  readonly atOnce: number;
  /** Slots of one owner at most. */
  readonly perOwner: number;
  /** Waiting requests of one owner at most. */
  readonly waiting: number;
}

/**
 * A limited number of slots, shared fairly: waiting owners take turns, however many requests each of them has, and
 * none has more than its own limit.
 */
export class FairSlots {
  /** In the order of their turns. */
  readonly #waiting = new Map<object, (() => void)[]>();
  readonly #held = new Map<object, number>();
  #free: number;

  constructor(readonly limits: FairLimits) {
    this.#free = limits.atOnce;
  }

  /**
   * Resolves with the slot's release function once there is a slot; immediately with undefined if too many of this
   * owner wait.
   * @throws the signal's reason.
   */
  async acquire(owner: object, signal: AbortSignal): Promise<(() => void) | undefined> {
    signal.throwIfAborted();
    const queue = this.#waiting.get(owner) ?? [];
    if (queue.length === 0 && this.#mayTake(owner)) return this.#take(owner);
    if (queue.length >= this.limits.waiting) return undefined;
    this.#waiting.set(owner, queue);
    let turn = () => {};
    const granted = new Promise<void>((resolve) => {
      turn = resolve;
      queue.push(turn);
    });
    try {
      await unlessAborted(signal, () => granted);
    } catch (reason) {
      const at = queue.indexOf(turn);
      // Granted at the moment of the abort: passed on.
      if (at < 0) this.#release(owner);
      else queue.splice(at, 1);
      if (queue.length === 0 && this.#waiting.get(owner) === queue) this.#waiting.delete(owner);
      throw reason;
    }
    return this.#releaseOnce(owner);
  }

  #mayTake(owner: object): boolean {
    return this.#free > 0 && (this.#held.get(owner) ?? 0) < this.limits.perOwner;
  }

  #take(owner: object): () => void {
    this.#count(owner, 1);
    return this.#releaseOnce(owner);
  }

  #releaseOnce(owner: object): () => void {
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      this.#release(owner);
    };
  }

  #release(owner: object): void {
    this.#count(owner, -1);
    this.#grant();
  }

  #count(owner: object, change: 1 | -1): void {
    this.#free -= change;
    const held = (this.#held.get(owner) ?? 0) + change;
    if (held === 0) this.#held.delete(owner);
    else this.#held.set(owner, held);
  }

  /** Passes the slot to the first owner in turn that may have one, which then moves to the end. */
  #grant(): void {
    for (const [owner, queue] of this.#waiting) {
      if (this.#free === 0) return;
      if (!this.#mayTake(owner)) continue;
      const turn = queue.shift();
      this.#waiting.delete(owner);
      if (queue.length > 0) this.#waiting.set(owner, queue);
      if (turn === undefined) continue;
      this.#count(owner, 1);
      turn();
    }
  }
}

interface Entry<Value> {
  readonly value: Value;
  readonly size: number;
}

interface Entries<Value> {
  readonly byKey: Map<string, Entry<Value>>;
  size: number;
}

/**
 * Entries of projects, each project's in the order of use. When they are too large together, the project that has the
 * most loses its oldest one: a project that adds many drops its own, and never those of a project with fewer.
 */
export class FairMap<Value> {
  readonly #projects = new Map<string | undefined, Entries<Value>>();
  #size = 0;

  /** @param maxSize of all entries together, in the unit of their sizes. */
  constructor(readonly maxSize: number) {}

  get(project: string | undefined, key: string): Value | undefined {
    return this.#projects.get(project)?.byKey.get(key)?.value;
  }

  /** Adds it, or moves it to the end. @param size default: 1, so that entries are counted. */
  set(project: string | undefined, key: string, value: Value, size = 1): void {
    this.delete(project, key);
    const entries = this.#projects.get(project) ?? { byKey: new Map<string, Entry<Value>>(), size: 0 };
    entries.byKey.set(key, { value, size });
    entries.size += size;
    this.#projects.set(project, entries);
    this.#size += size;
    while (this.#size > this.maxSize) this.#dropOldest();
  }

  delete(project: string | undefined, key: string): void {
    const entries = this.#projects.get(project);
    const entry = entries?.byKey.get(key);
    if (entries === undefined || entry === undefined) return;
    entries.byKey.delete(key);
    entries.size -= entry.size;
    this.#size -= entry.size;
    if (entries.byKey.size === 0) this.#projects.delete(project);
  }

  /** One project's, the oldest first. */
  *of(project: string | undefined): Iterable<readonly [string, Value]> {
    for (const [key, { value }] of this.#projects.get(project)?.byKey ?? []) yield [key, value];
  }

  #dropOldest(): void {
    let largest: { readonly project: string | undefined; readonly entries: Entries<Value> } | undefined;
    for (const [project, entries] of this.#projects) {
      if (largest === undefined || entries.size > largest.entries.size) largest = { project, entries };
    }
    const [oldest] = largest?.entries.byKey.keys() ?? [];
    if (largest !== undefined && oldest !== undefined) this.delete(largest.project, oldest);
  }
}

const megabyte = 1024 * 1024;
/** The largest share of V8's own limit that is used, unless the configuration sets a limit. */
const defaultShare = 0.5;
/** Factor of the limit above which runs are ended. */
const dangerous = 1.5;
const watchMs = 200;

/** Something that holds memory and can release it on request. */
interface MemoryHolder {
  /** The approximate number of characters that it holds. */
  readonly held: number;
  cancel(reason: AtCapacity): void;
}

/** MiB that the runner uses by default: a share of what V8 may use before it ends the process. */
export function defaultMemoryMb(): number {
  return Math.floor((getHeapStatistics().heap_size_limit / megabyte) * defaultShare);
}

/** What code, stacks and an allocator's reserve take without any run. */
const processMb = 128;

/** Milliseconds for which the process's size counts as known: to read it costs ten times as much as V8's figures. */
const sizeKnownMs = 10;
let size = { bytes: 0, readAt: Number.NEGATIVE_INFINITY };

function processSize(): number {
  const now = performance.now();
  if (now - size.readAt >= sizeKnownMs) size = { bytes: process.memoryUsage.rss(), readAt: now };
  return size.bytes;
}

/**
 * MiB of the JavaScript heap and of what is outside: V8 knows its buffers, and not what libraries such as those of zlib
 * allocate, which only the process's size shows.
 */
export function usedMemoryMb(): number {
  const { used_heap_size: heap, external_memory: external, total_physical_size } = getHeapStatistics();
  const outside = processSize() - total_physical_size - processMb * megabyte;
  return (heap + Math.max(external, outside)) / megabyte;
}

/**
 * Keeps the process from running out of memory, which would end every run in it. Above the limit nothing new begins.
 * At one and a half times the limit, the runs that hold the most are ended, one by one, until the rest fits.
 */
export class MemoryGuard {
  #watch: NodeJS.Timeout | undefined;

  constructor(
    readonly limitMb: number,
    readonly holders: () => Iterable<MemoryHolder>,
    readonly log: Log,
    readonly usedMb: () => number = usedMemoryMb,
  ) {}

  /** @param moreMb about to be allocated. @throws AtCapacity */
  requireRoom(moreMb = 0): void {
    const used = this.usedMb();
    if (used + moreMb < this.limitMb) return;
    const figures = `${Math.round(used)} of ${this.limitMb} MiB are in use`;
    throw new AtCapacity(`The runner is out of memory (${figures}): try again later.`);
  }

  /** Checked periodically while there are runs. */
  watch(): void {
    this.#watch ??= setInterval(() => this.look(), watchMs).unref();
  }

  rest(): void {
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  look(): void {
    const used = this.usedMb();
    if (used < this.limitMb * dangerous) return;
    const [max] = [...this.holders()].sort((one, other) => other.held - one.held);
    if (max === undefined) return;
    this.log.error({ usedMb: Math.round(used), limitMb: this.limitMb }, "a run is ended to free memory");
    const message = "The runner is out of memory, and this run used the most: try again later.";
    max.cancel(new AtCapacity(message));
  }
}

/** The share of memory that is available to this process and what it starts: of the host, or of its control group. 0 to 1. */
export function freeMemory(): number {
  const limit = process.constrainedMemory();
  const total = limit > 0 ? Math.min(limit, totalmem()) : totalmem();
  return Math.min(1, process.availableMemory() / total);
}
