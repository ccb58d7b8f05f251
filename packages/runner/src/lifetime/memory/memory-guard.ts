import { totalmem } from "node:os";
import { getHeapStatistics } from "node:v8";
import { AtCapacity } from "@ambit/core";
import type { Log } from "@ambit/core/plugin";

const megabyte = 1024 * 1024;
/** The largest share of V8's own limit that is used, unless the configuration sets a limit. */
const defaultShare = 0.5;
/** Factor of the limit above which runs are ended. */
const dangerous = 1.5;
const watchMs = 200;

/** Something that holds memory and can release it on request. */
export interface MemoryHolder {
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
