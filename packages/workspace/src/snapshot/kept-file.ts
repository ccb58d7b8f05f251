import type { FileHandle } from "node:fs/promises";
import { sourceReceiptSchema } from "@ambit/core/contract";
import { z } from "zod";

const count = z.int().nonnegative();
const factsSchema = z.strictObject({
  /** As `SnapshotFacts`. */
  sha256: z.string(),
  bytes: count,
  entries: count,
  skipped: count,
  /** Milliseconds since 1970. */
  builtAt: z.number(),
  /** What its workspace began with. */
  sources: z.array(sourceReceiptSchema),
});
/** What is known of a kept snapshot. */
export type KeptFacts = z.infer<typeof factsSchema>;

/** At a file's end: bytes of the facts before it, in decimal. */
const lengthDigits = 12;
/** Sources can have thousands of omitted paths. */
const maxFactsBytes = 16 * 1_048_576;
const chunkBytes = 1_048_576;

/** What comes after the archive in a file: one file, so that it appears and goes as a whole. */
export function trailerOf(facts: KeptFacts): Buffer {
  const text = Buffer.from(JSON.stringify(facts));
  return Buffer.concat([text, Buffer.from(String(text.length).padStart(lengthDigits))]);
}

/** Undefined for a file that is no whole snapshot. */
export async function factsOf(handle: FileHandle): Promise<KeptFacts | undefined> {
  const { size } = await handle.stat();
  if (size < lengthDigits) return undefined;
  const length = Number(await text(handle, size - lengthDigits, lengthDigits));
  const at = size - lengthDigits - length;
  if (!Number.isSafeInteger(length) || length <= 0 || length > maxFactsBytes || at < 0) return undefined;
  const facts = factsSchema.safeParse(jsonOf(await text(handle, at, length)));
  return facts.success && facts.data.bytes === at ? facts.data : undefined;
}

/** The archive of an open file, once. */
export async function* archiveIn(handle: FileHandle, bytes: number): AsyncGenerator<Buffer, void, undefined> {
  for (let at = 0; at < bytes; ) {
    const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, bytes - at));
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) throw new Error("a kept snapshot is shorter than it was");
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

async function text(handle: FileHandle, at: number, length: number): Promise<string> {
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, at);
  return buffer.toString("utf8", 0, bytesRead);
}

function jsonOf(read: string): unknown {
  try {
    return JSON.parse(read);
  } catch {
    return undefined;
  }
}
