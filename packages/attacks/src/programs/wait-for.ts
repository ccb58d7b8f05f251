/** Reads until a whole line holds the text, and returns it; undefined when the stream ends first. The rest stays unread. */
export async function waitForLine(
  stream: ReadableStream<Uint8Array>,
  text: string,
): Promise<string | undefined> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let said = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return undefined;
      said += decoder.decode(value, { stream: true });
      const whole = said.split("\n").slice(0, -1);
      const found = whole.find((line) => line.includes(text));
      if (found !== undefined) return found;
    }
  } finally {
    reader.releaseLock();
  }
}
