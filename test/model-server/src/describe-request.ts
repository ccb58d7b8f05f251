import type { Answer } from "./answer.js";
import type { RecordedRequest } from "./recording.js";

const LONGEST_TEXT = 60;

/** One line for a log, without the query, which has Gemini's key. */
export function describeRequest(request: RecordedRequest): string {
  const [path = ""] = request.path.split("?");
  const outcome = request.aborted ? "the client left" : String(request.status ?? "cut");
  if (request.operation !== "generate") return `${request.method} ${path} -> ${outcome}`;
  const results = request.toolResults.length;
  const got = results === 0 ? "" : ` + ${results} tool ${results === 1 ? "result" : "results"}`;
  const did = request.answer === undefined ? "refused" : describeAnswer(request.answer);
  return `${request.api} ${request.model} ${quoted(request.lastUserText)}${got} -> ${did} (${outcome})`;
}

function describeAnswer(answer: Answer): string {
  switch (answer.kind) {
    case "http":
      return `error ${answer.status}`;
    case "message": {
      const calls = (answer.calls ?? []).map((call) => ("shell" in call ? "shell" : `call ${call.tool}`));
      const text = (answer.chunks ?? []).join("");
      return [...(text === "" ? [] : [`say ${quoted(text)}`]), ...calls].join(", ");
    }
    default:
      return answer.kind;
  }
}

function quoted(text: string): string {
  return JSON.stringify(text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text);
}
