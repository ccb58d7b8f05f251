import { useNow } from "../../parts/basic.js";
import { TimesSwitch, useTimeText } from "../../parts/moment.js";
import { callSummary, durationText, visibleText } from "../../parts/words.js";
import type { Entry, RunSnapshot } from "../../server/run-log.js";
import { Part } from "./facts-part.js";

/** Calls that are drawn. */
const maxCalls = 200;

interface Bar {
  readonly key: string;
  readonly name: string;
  /** What says most of a call's arguments. */
  readonly summary?: string;
  readonly depth: number;
  readonly beganAt: number;
  readonly endedAt: number | undefined;
  readonly tone: string;
  readonly state: string;
  /** The entry of a call, which its bar leads to. */
  readonly entry?: string;
}

/** What the run was busy with, over time: its stages, and within the agent's turn its calls. */
export function Waterfall({
  snapshot,
  onChoose,
}: {
  readonly snapshot: RunSnapshot;
  /** A call was chosen, by the key of its entry. */
  readonly onChoose: (entry: string) => void;
}) {
  const { stages, entries, isLive } = snapshot;
  const clock = useNow(isLive ? 500 : 60_000);
  const beganAt = stages[0]?.beganAt;
  const textOf = useTimeText(beganAt ?? 0);
  if (beganAt === undefined) return null;
  const calls = entries.flatMap((entry) => (entry.kind === "call" ? callBar(entry, isLive) : []));
  const bars = [...stages.map(stageBar), ...calls.slice(-maxCalls)].toSorted(
    (one, other) => one.beganAt - other.beganAt,
  );
  const latest = Math.max(...bars.map((bar) => bar.endedAt ?? bar.beganAt));
  const end = isLive ? Math.max(latest, clock) : latest;
  const total = Math.max(1, end - beganAt);
  return (
    <Part title="Timeline">
      <div className="mb-2 flex flex-wrap justify-between gap-2">
        <TimesSwitch />
        {calls.length > maxCalls && <span className="text-xs text-muted">the latest {maxCalls} calls</span>}
      </div>
      <p className="numeric mb-1 flex justify-between pr-[4.75rem] pl-[8.5rem] text-xs whitespace-nowrap text-muted">
        <span>{textOf(beganAt)}</span>
        <span>{textOf(end)}</span>
      </p>
      <ol>
        {bars.map((bar) => (
          <li key={bar.key}>
            <BarRow
              bar={bar}
              x={(100 * (bar.beganAt - beganAt)) / total}
              width={(100 * ((bar.endedAt ?? end) - bar.beganAt)) / total}
              duration={durationText((bar.endedAt ?? end) - bar.beganAt)}
              began={textOf(bar.beganAt)}
              onChoose={onChoose}
            />
          </li>
        ))}
      </ol>
    </Part>
  );
}

function BarRow({
  bar: { name, summary, depth, tone, state, entry },
  x,
  width,
  duration,
  began,
  onChoose,
}: {
  readonly bar: Bar;
  /** Percent of the run. */
  readonly x: number;
  readonly width: number;
  readonly duration: string;
  readonly began: string;
  readonly onChoose: (entry: string) => void;
}) {
  const content = (
    <>
      <span
        className={`truncate ${entry === undefined ? "" : "font-mono"}`}
        style={{ paddingLeft: `${Math.min(depth, 6) * 0.75}rem` }}
      >
        {name}
        {summary !== undefined && <span className="text-muted"> {summary}</span>}
      </span>
      <svg className="h-3 w-full" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
        <rect x={Math.min(x, 99)} width={Math.max(1, width)} y="1" height="8" className={tone} />
      </svg>
      <span className="numeric text-right whitespace-nowrap text-muted">{duration}</span>
    </>
  );
  const shape = "grid w-full grid-cols-[8rem_1fr_4.25rem] items-center gap-2 py-0.5 text-left text-xs";
  const title = `${[name, summary].filter(Boolean).join(" ")}: ${state}, ${began}, ${duration}`;
  if (entry === undefined)
    return (
      <div className={shape} title={title}>
        {content}
      </div>
    );
  return (
    <button
      type="button"
      className={`${shape} rounded hover:bg-hover`}
      title={title}
      onClick={() => onChoose(entry)}
    >
      <span className="sr-only">Show</span>
      {content}
      <span className="sr-only">
        {state}, {began}
      </span>
    </button>
  );
}

const stageBar = ({ name, beganAt, endedAt, depth }: RunSnapshot["stages"][number]): Bar => ({
  key: `${name} ${beganAt}`,
  name: visibleText(name),
  depth,
  beganAt,
  endedAt,
  tone: name === "Agent" || name === "Model" ? "fill-accent opacity-40" : "fill-muted opacity-50",
  state: endedAt === undefined ? "under way" : "done",
});

function callBar(call: Extract<Entry, { kind: "call" }>, isLive: boolean): readonly Bar[] {
  const { key, name, input, depth, at, endedAt, result } = call;
  if (at === undefined) return [];
  const [tone, state] =
    result === undefined
      ? (["fill-wait", isLive ? "under way" : "without a result"] as const)
      : result.denied
        ? (["fill-bad", "denied"] as const)
        : result.isError
          ? (["fill-bad", "failed"] as const)
          : (["fill-accent", "done"] as const);
  return [
    {
      key,
      entry: key,
      name: visibleText(name),
      summary: callSummary(input).slice(0, 100),
      depth: depth + 1,
      beganAt: at,
      endedAt: endedAt ?? (isLive ? undefined : at),
      tone,
      state,
    },
  ];
}
