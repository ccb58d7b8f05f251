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
