/** The beginning of every id that the runner issues for a question. */
export const issuedPrefix = "ask_";

/** Whether an id looks like one of ours. An agent's own id must not. */
export function looksIssued(id: string): boolean {
  return id.startsWith(issuedPrefix);
}
