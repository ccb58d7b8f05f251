import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useLayoutEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { Empty, ErrorNote, inputClass, Spinner, useNow } from "../parts/basic.js";
import { outcomeOfListed } from "../parts/outcome.js";
import { useSession } from "../parts/session-context.js";
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
import type { ListedRun } from "../server/client.js";
import { actors } from "../server/queries.js";
import { idOf, type RunFilter, RunList } from "../server/run-list.js";
import { type RunsSearch, readRunsSearch, type ShownState, shownStates } from "./runs-search.js";

const route = getRouteApi("/runs");

/** Pixels of a row; CSS has the same. */
const rowHeight = 52;
const words: Readonly<Record<ShownState, string>> = {
  all: "All",
  queued: "Queued",
  running: "Running",
  waiting: "Waiting",
  failed: "Failed",
  completed: "Completed",
  cancelled: "Cancelled",
};

const filters: Readonly<Record<ShownState, RunFilter>> = {
  all: {},
  queued: { state: "queued" },
  running: { state: "running" },
  waiting: { asking: true },
  failed: { outcome: "failed" },
  completed: { outcome: "completed" },
  cancelled: { outcome: "cancelled" },
};

const columns =
  "md:grid md:grid-cols-[10rem_minmax(10rem,2fr)_minmax(4rem,0.6fr)_9rem_3.5rem_4rem_5.5rem_5.5rem] md:items-center md:gap-4";

export function RunsScreen() {
  const search: RunsSearch = route.useSearch();
  const navigate = route.useNavigate();
  const isOfOneProject = useSession().project !== undefined;
  const { show = "all", agent, sandbox, session, project } = search;
  const list = useMemo(() => {
    const named = { harness: agent, sandbox, sessionId: session, projectId: project };
    const filled = Object.entries(named).filter(([, value]) => value !== undefined);
    return new RunList({ ...filters[show], ...Object.fromEntries(filled) });
  }, [show, agent, sandbox, session, project]);
  const { runs, isComplete, isRead, error } = useSyncExternalStore(list.subscribe, list.snapshot);
  const change = (part: { readonly [Name in keyof RunsSearch]?: RunsSearch[Name] | undefined }) => {
    void navigate({ to: "/runs", search: readRunsSearch({ ...search, ...part }), replace: true });
  };
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
        <div className="grid w-full grid-cols-2 gap-2 md:flex xl:w-auto 2xl:ml-auto">
          <Choice
            label="Agent"
            all="Every agent"
            kind="harness"
            chosen={agent}
            onChoose={(name) => change({ agent: name })}
          />
          <Choice
            label="Sandbox"
            all="Every sandbox"
            kind="sandbox"
            chosen={sandbox}
            onChoose={(name) => change({ sandbox: name })}
          />
          {(["session", ...(isOfOneProject ? [] : (["project"] as const))] as const).map((name) => (
            <input
              key={name}
              aria-label={name === "session" ? "Session" : "Project"}
              placeholder={name === "session" ? "Session" : "Project"}
              className={`${inputClass} min-w-24 flex-1 xl:w-32 xl:flex-none`}
              value={search[name] ?? ""}
              onChange={(event) => change({ [name]: event.target.value })}
            />
          ))}
        </div>
      </header>
      <div className={`${columns} hidden border-b border-line px-8 pb-2 text-xs text-muted`} aria-hidden>
        <span>Outcome</span>
        <span>Run</span>
        <span>Session</span>
        <span>Boundary</span>
        <span className="text-right">Tokens</span>
        <span className="text-right">Cost</span>
        <span className="text-right">Took</span>
        <span className="text-right">Began</span>
      </div>
      {!isRead && error !== undefined ? (
        <ErrorNote error={error} />
      ) : !isRead ? (
        <Spinner label="Reading the runs" />
      ) : runs.length === 0 ? (
        <NoRuns isFiltered={Object.keys(search).length > 0} />
      ) : (
        <Rows
          key={JSON.stringify(search)}
          runs={runs}
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

/** The loaded actors of a kind, and the one that the address names. */
function Choice({
  label,
  all,
  kind,
  chosen,
  onChoose,
}: {
  readonly label: string;
  readonly all: string;
  readonly kind: "harness" | "sandbox";
  readonly chosen: string | undefined;
  readonly onChoose: (name: string) => void;
}) {
  const { data = [] } = useQuery(actors);
  const loaded = data.filter((actor) => actor.kind === kind).map(({ name }) => name);
  const names = [...new Set([...loaded, ...(chosen === undefined ? [] : [chosen])])].toSorted();
  return (
    <select
      aria-label={label}
      className={`${inputClass} min-w-24 flex-1 xl:w-36 xl:flex-none`}
      value={chosen ?? ""}
      onChange={(event) => onChoose(event.target.value)}
    >
      <option value="">{all}</option>
      {names.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </select>
  );
}

function Rows({ runs, onEnd }: { readonly runs: readonly ListedRun[]; readonly onEnd: () => void }) {
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
              <RunRow run={run} />
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

function RunRow({ run }: { readonly run: ListedRun }) {
  const now = useNow(1_000);
  const { runId, projectId, sessionId, harness, sandbox, createdAt, summary } = run;
  const { total, cost } = summary?.usage ?? {};
  return (
    <Link
      to="/runs/$runId"
      params={{ runId }}
      search={projectId === undefined ? {} : { project: projectId }}
      className={`${columns} flex h-full flex-wrap content-center items-center gap-x-3 px-4 text-sm hover:bg-hover focus-visible:-outline-offset-2 md:px-8`}
    >
      <OutcomeMark outcome={outcomeOfListed(run)} />
      <span className="min-w-0 flex-1">
        <span className="flex items-baseline gap-2">
          <span className="truncate font-medium">{visibleText(harness)}</span>
          <code className="truncate text-xs text-muted">{shortId(visibleText(runId))}</code>
          {projectId !== undefined && (
            <span className="truncate text-xs text-muted">{visibleText(projectId)}</span>
          )}
        </span>
        <span className="hidden truncate text-xs text-muted md:block">{wordsOf(run)}</span>
      </span>
      <span className="hidden truncate text-muted md:block">{visibleText(sessionId ?? "")}</span>
      <span className="order-last flex w-full text-xs md:order-none md:w-auto md:text-sm">
        <ConfinementMark receipt={summary?.receipt} />
        {summary?.receipt === undefined && <span className="text-muted">{visibleText(sandbox)}</span>}
      </span>
      <span className="numeric hidden text-right text-muted md:block">
        {total === undefined ? "" : compactText(total)}
      </span>
      <span className="numeric hidden text-right text-muted md:block">
        {cost === undefined ? "" : dollarsText(cost)}
      </span>
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

/** What the run said last, or why it failed, without the marks of Markdown. */
function wordsOf({ state, summary }: ListedRun): string {
  if (state === "ended" && summary === undefined)
    return "Ended under an earlier version: its page has the rest";
  return visibleText((summary?.excerpt ?? "").replaceAll(/[*_`#>]+/g, ""));
}

function took({ startedAt, endedAt }: ListedRun, now: number): string {
  if (startedAt === undefined) return "";
  return durationText((endedAt === undefined ? now : Date.parse(endedAt)) - Date.parse(startedAt));
}
