import { KeptPieces } from "@ambit/core/plugin";

/** Reads a stream to its end and keeps its first bytes. `exceeded` is called once, when there are more. */
export async function collectStart(
  stream: ReadableStream<Uint8Array>,
  limit: number,
  exceeded: () => void,
): Promise<string> {
  const beginning = new KeptPieces();
  let size = 0;
  for await (const chunk of stream) {
    if (size <= limit && size + chunk.length > limit) exceeded();
    if (size <= limit) beginning.push(chunk);
    size += chunk.length;
  }
  return size > limit ? "" : beginning.take().toString("utf8");
}

/** Reads a stream to its end and keeps its last characters, however much there is. */
export async function collectEnd(stream: ReadableStream<Uint8Array>, characters: number): Promise<string> {
  const decoder = new TextDecoder();
  let end = "";
  for await (const chunk of stream) {
    const read = end + decoder.decode(chunk, { stream: true });
    end = read.slice(Math.max(0, read.length - characters));
  }
  return end;
}

/** Writes a text and ends the stream. False when its reader left before it had all of it. */
export async function feed(stdin: WritableStream<Uint8Array>, text: string): Promise<boolean> {
  const writer = stdin.getWriter();
  try {
    await writer.write(new TextEncoder().encode(text));
    await writer.close();
    return true;
  } catch {
    // A child that ends without reading its input is no fault of ours: its exit says what happened.
    await writer.abort().catch(() => {});
    return false;
  } finally {
    writer.releaseLock();
  }
}
