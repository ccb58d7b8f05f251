import type { Process } from "@ambit/core/plugin";

/** Writes to a process until it has all, or doesn't read any more: its exit code then says why. */
export async function feed(
  { stdin }: Pick<Process, "stdin">,
  input: AsyncIterable<Uint8Array> | readonly Uint8Array[] | Uint8Array,
): Promise<void> {
  const writer = stdin.getWriter();
  try {
    if (input instanceof Uint8Array) await writer.write(input);
    else for await (const bytes of input) await writer.write(bytes);
    await writer.close();
  } catch {
    // The process has ended, or the input failed: whoever reads the process learns it.
    await writer.abort().catch(() => {});
  }
}

/** The last characters of what a process prints. */
export async function endOf(stream: ReadableStream<Uint8Array>, maxCharacters: number): Promise<string> {
  const decoder = new TextDecoder();
  let end = "";
  try {
    for await (const part of stream)
      end = lastOf(end + decoder.decode(part, { stream: true }), maxCharacters);
  } catch {
    // The process was killed.
  }
  return end;
}

const lastOf = (text: string, count: number) => text.slice(Math.max(0, text.length - count));
