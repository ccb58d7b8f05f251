import type { DemoTurn } from "../turn.js";
import type { InstructionOf } from "./instruction-of.js";

/** How much of a body is shown, in characters. */
const shownLimit = 2_000;

/** Gets a URL with Node's own `fetch`. A response with any status is a completed call: the network allowed it. */
export async function fetchUrl(instruction: InstructionOf<"fetch">, turn: DemoTurn): Promise<void> {
  const { url, askFirst } = instruction;
  await turn.callTool(
    {
      title: `Fetch ${url}`,
      kind: "fetch",
      rawInput: { url },
      ask: askFirst ? "remembering" : "as-told",
    },
    async () => {
      const response = await fetch(url, { signal: turn.signal });
      const body = await beginningOf(response);
      return {
        failed: false,
        text: `${response.status}\n${body}`,
        rawOutput: { status: response.status, body },
      };
    },
  );
}

async function beginningOf(response: Response): Promise<string> {
  if (response.body === null) return "";
  let text = "";
  // Leaving the loop cancels the rest of the body.
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.length >= shownLimit) break;
  }
  return text.slice(0, shownLimit);
}
