/** What the demo says when something is missing here: a sentence with its fix, never a stack. Pure. */

/**
 * A refusal of `POST /plan`, as far as the demo reads it.
 * @typedef {{ error: string, failure: { gaps?: { reason: string, fix?: string }[], issues?: { path: string, message: string }[] } }} Refusal
 */

/**
 * Why the demo goes on without a boundary: what was seen, what isn't guaranteed, and the one command that changes it.
 * @param {Refusal} refusal
 */
export function withoutBoundary({ error, failure: { gaps: [gap] = [], issues: [issue] = [] } }) {
  const reason = gap?.reason ?? (issue === undefined ? error : `${issue.path}: ${issue.message}`);
  return (
    `Without a boundary, because this host can't guarantee one: ${reason}\n` +
    `  Nothing keeps the agent from this user's files and network here. To change that: ${gap?.fix ?? "npx ambit doctor"}`
  );
}

/** What to do about an error of the system, by its code. @type {Readonly<Record<string, string>>} */
const fixes = {
  EACCES: "let this user write there, or set TMPDIR to a folder that it can write",
  EPERM: "let this user write there, or set TMPDIR to a folder that it can write",
  EROFS: "set TMPDIR to a folder that can be written",
  ENOSPC: "free space there, or set TMPDIR to a folder on another disk",
  EADDRNOTAVAIL: "bring up the loopback interface: ip link set lo up",
  ECONNREFUSED: "unset HTTP_PROXY and NODE_USE_ENV_PROXY, or set NO_PROXY=127.0.0.1,localhost",
};

/**
 * Why the demo ended.
 * @param {unknown} error
 */
export function demoFailure(error) {
  const {
    message = String(error),
    cause,
    code,
  } = /** @type {{ message?: string, cause?: unknown, code?: string }} */ (Object(error));
  // Node says "fetch failed", and the reason in the cause, which may be of several addresses.
  const { message: why, code: deeper } = /** @type {{ message?: string, code?: string }} */ (Object(cause));
  const reason = [message, why].filter((text) => text !== undefined && text !== "").join(": ");
  const fix = fixes[deeper ?? code ?? ""];
  const [line = ""] = reason.split("\n");
  return `the demo failed: ${line}${fix === undefined ? "" : `. To change that: ${fix}`}`;
}
