import { readPath } from "./json-path.js";

/** Characters of each part that reach the model. */
const longestPart = 2_000;

/**
 * What a platform's error says to the model, to follow the status: `{"detail": {"code", "next_step"}}`, of which one may
 * be missing. Empty for any other body, and for values that aren't texts: those weren't written for a model. Pure.
 */
export function adviceIn(body: string): string {
  const answer = parse(body);
  const code = textAt(answer, "detail.code");
  const nextStep = textAt(answer, "detail.next_step");
  return `${code === undefined ? "" : ` (${code})`}${nextStep === undefined ? "" : `: ${nextStep}`}`;
}

function textAt(answer: unknown, path: string): string | undefined {
  const value = readPath(answer, path);
  if (typeof value !== "string" || value.trim() === "") return undefined;
  const text = value.trim();
  return text.length > longestPart ? `${text.slice(0, longestPart)}…` : text;
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // Not JSON, or cut: it holds no advice.
    return undefined;
  }
}
