import { Spinner } from "../../parts/basic.js";
import { plainCode, visibleText } from "../../parts/words.js";
import type { RunSnapshot } from "../../server/run-log.js";

/** How the run ended: at the end of its activity. */
export function Outcome({ snapshot }: { readonly snapshot: RunSnapshot }) {
  const { result, isLive, entries, stage } = snapshot;
  if (result === undefined) {
    if (!isLive || entries.length === 0) return null;
    return (
      <div className="-my-8 -ml-6 w-fit">
        <Spinner label={stage === undefined ? "Working" : visibleText(stage)} />
      </div>
    );
  }
  const { failure, error, stopReason, warnings = [] } = result;
  return (
    <div className="space-y-3 border-t border-line pt-3">
      {failure === undefined ? (
        <p className="text-sm text-muted">
          {stopReason === "paused"
            ? "Paused: it goes on with the session's next turn, once its question is answered."
            : stopReason === undefined || stopReason === "end_turn"
              ? "Completed."
              : `Stopped: ${plainCode(stopReason)}.`}
        </p>
      ) : (
        <div role="alert" className="rounded-md bg-bad-wash p-3 text-sm">
          <p className="font-medium text-bad">
            {plainCode(failure.code).replace(/^./, (letter) => letter.toUpperCase())}
            {failure.retryable && <span className="font-normal"> · may succeed when it is tried again</span>}
          </p>
          <p className="mt-1 break-words whitespace-pre-wrap">{error}</p>
          <Reasons failure={failure} />
        </div>
      )}
      {warnings.map(({ path, message }) => (
        <p key={`${path} ${message}`} className="text-sm break-words text-wait">
          {path !== undefined && <code>{visibleText(path)}</code>} {visibleText(message)}
        </p>
      ))}
    </div>
  );
}

function Reasons({ failure }: { readonly failure: NonNullable<RunSnapshot["result"]>["failure"] }) {
  const { gaps = [], issues = [] } = failure ?? {};
  if (gaps.length + issues.length === 0) return null;
  return (
    <ul className="mt-3 space-y-3">
      {gaps.map(({ actor, capability, reason, fix }) => (
        <li key={`${actor} ${capability} ${reason}`}>
          <p>
            <code className="font-medium">{capability}</code> by {actor}: {reason}
          </p>
          <p className="mt-1">
            <span className="font-medium">Fix: </span>
            {fix}
          </p>
        </li>
      ))}
      {issues.map(({ path, message }) => (
        <li key={`${path} ${message}`}>
          <code className="font-medium">{path}</code> {message}
        </li>
      ))}
    </ul>
  );
}
