import { useQueries, useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useLayoutEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { Empty, ErrorNote, inputClass, Spinner, useNow } from "../parts/basic.js";
import { outcomeOf } from "../parts/outcome.js";
import { ConfinementMark, OutcomeMark } from "../parts/status.js";
import {
  agoText,
  compactText,
  dollarsText,
  durationText,
  momentText,
  shortId,
  visibleText,
} from "../parts/words.js";
import type { ListedRun, RunInfo } from "../server/client.js";
import { openQuestions, runInfo } from "../server/queries.js";
import { idOf, RunList } from "../server/run-list.js";
import { type RunsSearch, readRunsSearch, type ShownState, shownStates } from "./runs-search.js";

const route = getRouteApi("/runs");

/** Pixels of a row; CSS has the same. */
const rowHeight = 52;
/** Ended runs whose outcome is looked at for a filter by outcome. */
const maxLookedAt = 2_000;

const words: Readonly<Record<ShownState, string>> = {
  all: "All",
  running: "Running",
  waiting: "Waiting",
  failed: "Failed",
  completed: "Completed",
};

const columns =
  "md:grid md:grid-cols-[9.5rem_minmax(10rem,1.3fr)_minmax(7rem,1fr)_8.5rem_5.5rem_5.5rem_6.5rem] md:items-center md:gap-4";

export function RunsScreen() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { show = "all", agent = "", session = "", project } = search;
  const list = useMemo(
    () => new RunList({ sessionId: session === "" ? undefined : session, projectId: project }),
    [session, project],
  );
  const { runs, isComplete, isRead, error } = useSyncExternalStore(list.subscribe, list.snapshot);
  const { data: questions = [] } = useQuery(openQuestions);
  const { shown, outcomes } = useShown(runs, show, agent, questions);
  const change = (part: Partial<RunsSearch> & { readonly show?: RunsSearch["show"] | undefined }) => {
    void navigate({ to: "/runs", search: readRunsSearch({ ...search, ...part }), replace: true });
  };
  const agents = useMemo(() => [...new Set(runs.map(({ harness }) => harness))].toSorted(), [runs]);
  return (
    <>
      <header className="flex flex-wrap items-center gap-x-6 gap-y-3 px-4 pt-4 pb-3 md:px-8 md:pt-6">
        <h1>Runs</h1>
        <div role="radiogroup" aria-label="Which runs" className="flex max-w-full gap-1 overflow-x-auto">
          {shownStates.map((state) => (
            // biome-ignore lint/a11y/useSemanticElements: buttons in a row, each one press
            <button
              key={state}
              type="button"
              role="radio"
              aria-checked={state === show}
              className="rounded-md px-3 py-1 text-sm text-muted hover:bg-hover aria-checked:bg-hover aria-checked:font-medium aria-checked:text-ink"
              onClick={() => change({ show: state === "all" ? undefined : state })}
            >
              {words[state]}
            </button>
          ))}
        </div>
        <div className="flex w-full gap-2 md:ml-auto md:w-auto">
          <select
            aria-label="Agent"
            className={`${inputClass} md:w-36`}
            value={agent}
            onChange={(event) => change({ agent: event.target.value })}
          >
            <option value="">Every agent</option>
            {agents.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
          <input
            aria-label="Session"
            placeholder="Session"
            className={`${inputClass} md:w-44`}
            value={session}
            onChange={(event) => change({ session: event.target.value })}
          />
        </div>
      </header>
      <div className={`${columns} hidden border-b border-line px-8 pb-2 text-xs text-muted`} aria-hidden>
        <span>Outcome</span>
        <span>Run</span>
        <span>Session</span>
        <span>Boundary</span>
        <span className="text-right">Tokens</span>
        <span className="text-right">Took</span>
        <span className="text-right">Began</span>
      </div>
      {!isRead && error !== undefined ? (
        <ErrorNote error={error} />
      ) : !isRead ? (
        <Spinner label="Reading the runs" />
      ) : shown.length === 0 ? (
        <NoRuns isFiltered={show !== "all" || agent !== "" || session !== ""} />
      ) : (
        <Rows
          runs={shown}
          outcomes={outcomes}
          onEnd={() => {
            if (!isComplete) void list.readOlder();
          }}
        />
      )}
    </>
  );
}

function NoRuns({ isFiltered }: { readonly isFiltered: boolean }) {
  if (isFiltered)
    return (
      <Empty title="No run is like this">
        <Link to="/runs" search={{}} className="text-accent underline">
          Show all runs
        </Link>
      </Empty>
    );
  return (
    <Empty title="No runs yet">
      <Link to="/start" className="text-accent underline underline-offset-2">
        Start one
      </Link>
      , or send <code>POST /run</code>: it appears here by itself.
    </Empty>
  );
}

/** The runs that the filter shows. Those by outcome need each run's result, which lists don't have. */
function useShown(
  runs: readonly ListedRun[],
  show: ShownState,
  agent: string,
  questions: readonly { readonly runId: string; readonly projectId?: string }[],
) {
  const asking = useMemo(() => {
    const counts = new Map<string, number>();
    for (const { runId, projectId } of questions) {
      const id = projectId === undefined ? runId : `${projectId}/${runId}`;
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
    return counts;
  }, [questions]);
  const ofAgent = useMemo(
    () => (agent === "" ? runs : runs.filter(({ harness }) => harness === agent)),
    [runs, agent],
  );
  const byOutcome = show === "failed" || show === "completed";
  const ended = useMemo(
    () => (byOutcome ? ofAgent.filter(({ state }) => state === "ended").slice(0, maxLookedAt) : []),
    [ofAgent, byOutcome],
  );
  const results = useQueries({
    queries: ended.map((run) => runInfo(run, true)),
    combine: (all) => all.map(({ data }) => data?.result),
  });
  const shown = useMemo(() => {
    if (show === "all") return ofAgent;
    if (show === "running") return ofAgent.filter(({ state }) => state !== "ended");
    if (show === "waiting") return ofAgent.filter((run) => asking.has(idOf(run)));
    return ended.filter((run, at) => {
      const result = results[at];
      return result !== undefined && outcomeOf(run.state, result, 0).kind === show;
    });
  }, [ofAgent, ended, results, show, asking]);
  return { shown, outcomes: asking };
}

function Rows({
  runs,
  outcomes,
  onEnd,
}: {
  readonly runs: readonly ListedRun[];
  readonly outcomes: ReadonlyMap<string, number>;
  readonly onEnd: () => void;
}) {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: runs.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => (runs[index] === undefined ? index : idOf(runs[index])),
    overscan: 8,
  });
  const items = rows.getVirtualItems();
  const lastIndex = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (lastIndex >= runs.length - 20) onEnd();
  }, [lastIndex, runs.length, onEnd]);
  useStill(runs, scroller);
  const move = (event: KeyboardEvent<HTMLElement>) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target instanceof HTMLElement ? event.target.closest("li") : null;
    if (step === undefined || row === null) return;
    event.preventDefault();
    const index = Number(row.dataset.index) + step;
    rows.scrollToIndex(index);
    scroller.current?.querySelector<HTMLElement>(`li[data-index="${index}"] a`)?.focus();
  };
  return (
    <div ref={scroller} className="min-h-0 flex-1 overflow-y-auto">
      <ul className="relative" style={{ height: rows.getTotalSize() }} aria-label="Runs" onKeyDown={move}>
        {items.map(({ key, index, start }) => {
          const run = runs[index];
          if (run === undefined) return null;
          return (
            <li
              key={key}
              data-index={index}
              className="absolute inset-x-0 h-[52px] border-b border-line"
              style={{ transform: `translateY(${start}px)` }}
            >
              <RunRow run={run} openCount={outcomes.get(idOf(run)) ?? 0} />
            </li>
          );
        })}
      </ul>
    </div>
  );
}

/** New runs appear above what someone reads without moving it. */
function useStill(runs: readonly ListedRun[], scroller: { readonly current: HTMLDivElement | null }): void {
  const first = useRef<string>(undefined);
  useLayoutEffect(() => {
    const before = first.current;
    first.current = runs[0] === undefined ? undefined : idOf(runs[0]);
    const element = scroller.current;
    if (before === undefined || element === null || element.scrollTop < rowHeight) return;
    const added = runs.findIndex((run) => idOf(run) === before);
    if (added > 0) element.scrollTop += added * rowHeight;
  }, [runs, scroller]);
}

function RunRow({ run, openCount }: { readonly run: ListedRun; readonly openCount: number }) {
  const now = useNow(1_000);
  const hasEnded = run.state === "ended";
  const { data } = useQuery({ ...runInfo(run, true), enabled: hasEnded });
  const outcome = outcomeOf(run.state, data?.result, openCount);
  const { runId, projectId, sessionId, harness, sandbox, createdAt } = run;
  return (
    <Link
      to="/runs/$runId"
      params={{ runId }}
      search={projectId === undefined ? {} : { project: projectId }}
      className={`${columns} flex h-full flex-wrap content-center items-center gap-x-3 px-4 text-sm hover:bg-hover focus-visible:-outline-offset-2 md:px-8`}
    >
      <OutcomeMark outcome={outcome} />
      <span className="min-w-0 flex-1">
        <span className="flex items-baseline gap-2">
          <span className="truncate font-medium">{visibleText(harness)}</span>
          <code className="truncate text-xs text-muted">{shortId(visibleText(runId))}</code>
          {projectId !== undefined && (
            <span className="truncate text-xs text-muted">{visibleText(projectId)}</span>
          )}
        </span>
        <span className="hidden truncate text-xs text-muted md:block">{lastWords(data)}</span>
      </span>
      <span className="hidden truncate text-muted md:block">{visibleText(sessionId ?? "")}</span>
      <span className="order-last flex w-full text-xs md:order-none md:w-auto md:text-sm">
        <ConfinementMark receipt={data?.result?.receipt} />
        {data?.result === undefined && <span className="text-muted">{visibleText(sandbox)}</span>}
      </span>
      <span className="numeric hidden text-right text-muted md:block">{spentBy(data)}</span>
      <span className="numeric hidden text-right md:block">{took(run, now)}</span>
      <time
        className="numeric text-right text-xs whitespace-nowrap text-muted md:text-sm"
        dateTime={createdAt}
        title={momentText(createdAt)}
      >
        {agoText(createdAt, now)}
      </time>
    </Link>
  );
}

/** What the run said last, or why it failed. */
function lastWords(info: RunInfo | undefined): string {
  const { error, output = "" } = info?.result ?? {};
  return visibleText((error ?? output).slice(-500).replaceAll(/[*_`#>]+/g, "")).slice(-160);
}

function spentBy(info: RunInfo | undefined): string {
  const { cost, total } = info?.result?.usage ?? {};
  if (cost !== undefined) return dollarsText(cost);
  return total === undefined ? "" : compactText(total);
}

function took({ startedAt, endedAt }: ListedRun, now: number): string {
  if (startedAt === undefined) return "";
  return durationText((endedAt === undefined ? now : Date.parse(endedAt)) - Date.parse(startedAt));
}
