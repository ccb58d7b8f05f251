import { durationText, visibleText } from "../../parts/words.js";
import type { Entry } from "../../server/run-log.js";
import { Part } from "./facts-part.js";

/** Calls that are drawn. */
const maxBars = 200;

/** Calls over time, as far as this page saw them happen. */
export function Waterfall({ entries }: { readonly entries: readonly Entry[] }) {
  const calls = entries.flatMap((entry) =>
    entry.kind === "call" && entry.beganAt !== undefined ? [{ ...entry, beganAt: entry.beganAt }] : [],
  );
  const shown = calls.slice(-maxBars);
  const [first] = shown;
  if (first === undefined) return null;
  const now = performance.now();
  const end = Math.max(...shown.map(({ endedAt = now }) => endedAt));
  const total = Math.max(1, end - first.beganAt);
  return (
    <Part title={`Calls, over ${durationText(total)}`}>
      <ol className="space-y-1">
        {shown.map(({ key, name, beganAt, endedAt = now, result }) => (
          <li key={key} className="grid grid-cols-[6rem_1fr_3.5rem] items-center gap-2 text-xs">
            <span className="truncate">{visibleText(name)}</span>
            <svg className="h-3 w-full" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
              <rect
                x={(100 * (beganAt - first.beganAt)) / total}
                width={Math.max(1, (100 * (endedAt - beganAt)) / total)}
                y="1"
                height="8"
                className={result?.isError ? "fill-bad" : result === undefined ? "fill-wait" : "fill-accent"}
              />
            </svg>
            <span className="numeric text-right text-muted">{durationText(endedAt - beganAt)}</span>
          </li>
        ))}
      </ol>
    </Part>
  );
}
