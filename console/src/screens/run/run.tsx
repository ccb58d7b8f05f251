import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { ArrowLeft, Square } from "lucide-react";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { Button, ErrorNote, Icon, Spinner, useNow } from "../../parts/basic.js";
import { CopyButton } from "../../parts/code.js";
import { outcomeOf } from "../../parts/outcome.js";
import { useMay } from "../../parts/session-context.js";
import { OutcomeMark, UnconfinedBanner } from "../../parts/status.js";
import { durationText, shortId, visibleText } from "../../parts/words.js";
import { clientOf, type RunPlace } from "../../server/client.js";
import { openQuestions, runInfo } from "../../server/queries.js";
import type { ChosenEntry, RunLog } from "../../server/run-log.js";
import { Activity } from "./activity.js";
import { UseAgain } from "./again.js";
import { Boundary } from "./boundary.js";
import { Facts } from "./facts.js";
import { Files } from "./files.js";
import { Output } from "./output.js";
import { readRunSearch, type Tab, tabs } from "./search.js";
import { SessionTerminal } from "./session-terminal.js";
import { useRunLog } from "./use-run-log.js";

const route = getRouteApi("/runs/$runId");

export function RunScreen() {
  const { runId } = route.useParams();
  const { project } = route.useSearch();
  const place = useMemo(() => ({ runId, projectId: project }), [runId, project]);
  const log = useRunLog(place);
  if (log === undefined) return null;
  return <FollowedRun place={place} log={log} />;
}

function FollowedRun({ place, log }: { readonly place: RunPlace; readonly log: RunLog }) {
  const snapshot = useSyncExternalStore(log.subscribe, log.snapshot);
  const { result, error, isLive } = snapshot;
  const { tab: requested = "activity" } = route.useSearch();
  const may = useMay();
  const cache = useQueryClient();
  const wasLiveAtFirst = useRef<boolean>(undefined);
  const { data: info, error: missing } = useQuery(runInfo(place, !isLive));
  const { data: questions = [] } = useQuery(openQuestions);
  const [chosen, setChosen] = useState<ChosenEntry>();
  const choose = (key: string) => setChosen({ key });
  const openCount = questions.filter(
    ({ runId, projectId }) => runId === place.runId && projectId === info?.projectId,
  ).length;
  useEffect(() => {
    if (isLive) return;
    void cache.invalidateQueries({ queryKey: openQuestions.queryKey });
    void cache.invalidateQueries({ queryKey: ["workspace"] });
  }, [isLive, cache]);
  const { sessionId, projectId } = info ?? {};
  const session = useMemo(
    () => (sessionId === undefined ? undefined : { sessionId, projectId }),
    [sessionId, projectId],
  );
  const hasTerminal = session !== undefined && may.openTerminals;
  const tab = requested === "terminal" && !hasTerminal ? "activity" : requested;
  if (missing !== null && info === undefined && snapshot.events === 0)
    return (
      <ErrorNote error={missing}>
        <Link to="/runs" className="text-accent underline underline-offset-2">
          All runs
        </Link>
      </ErrorNote>
    );
  if (info === undefined) return <Spinner label="Reading the run" />;
  wasLiveAtFirst.current ??= info.state !== "ended";
  const wasLive = wasLiveAtFirst.current;
  const outcome = outcomeOf(isLive ? info.state : "ended", result ?? info.result, openCount);
  const receipt = result?.receipt ?? info.result?.receipt;
  return (
    <>
      <header className="flex flex-wrap items-center gap-x-4 gap-y-2 px-4 pt-4 pb-3 md:px-8 md:pt-6">
        <Link
          to="/runs"
          aria-label="All runs"
          className="-ml-2 rounded-md p-2 text-muted hover:bg-hover hover:text-ink"
        >
          <Icon of={<ArrowLeft />} />
        </Link>
        <h1 className="truncate">{visibleText(info.harness)}</h1>
        <span className="flex items-center gap-1 text-sm text-muted">
          <code className="text-sm">{shortId(visibleText(info.runId))}</code>
          <CopyButton text={info.runId} label="Copy the run's id" />
        </span>
        <OutcomeMark outcome={outcome} />
        <Took startedAt={info.startedAt} endedAt={info.endedAt} />
        <div className="ml-auto flex gap-2">
          <UseAgain place={place} snapshot={snapshot} />
          {isLive && <Cancel place={place} />}
        </div>
      </header>
      <Tabs hasTerminal={hasTerminal} />
      <UnconfinedBanner receipt={receipt} />
      <div className="flex min-h-0 flex-1 flex-col overflow-y-auto border-t border-line lg:flex-row lg:overflow-hidden">
        {tab === "activity" && (
          <Activity place={place} snapshot={snapshot} follows={wasLive} chosen={chosen} onChoose={choose} />
        )}
        {tab === "output" && <Output snapshot={snapshot} follows={wasLive} />}
        {tab === "files" && <Files place={place} session={session} snapshot={snapshot} receipt={receipt} />}
        {tab === "terminal" && session !== undefined && <SessionTerminal session={session} />}
        {tab === "boundary" && <Boundary snapshot={snapshot} receipt={receipt} />}
        {tab === "activity" && <Facts info={info} snapshot={snapshot} receipt={receipt} onChoose={choose} />}
      </div>
      {error !== undefined && (
        <p role="alert" className="border-t border-line bg-bad-wash px-8 py-2 text-sm text-bad">
          {error.message}
        </p>
      )}
    </>
  );
}

const tabWords: Readonly<Record<Tab, string>> = {
  activity: "Activity",
  output: "Output",
  files: "Files",
  boundary: "Boundary",
  terminal: "Terminal",
};

function Tabs({ hasTerminal }: { readonly hasTerminal: boolean }) {
  const search = route.useSearch();
  const shown = tabs.filter((name) => name !== "terminal" || hasTerminal);
  return (
    <nav aria-label="Parts of the run" className="flex gap-4 px-4 md:px-8">
      {shown.map((name) => (
        <Link
          key={name}
          to="/runs/$runId"
          from="/runs/$runId"
          search={readRunSearch({ ...search, tab: name })}
          activeOptions={{ exact: true, includeSearch: true, explicitUndefined: true }}
          className="border-b-2 border-transparent pb-2 text-sm text-muted hover:text-ink aria-[current=page]:border-accent aria-[current=page]:font-medium aria-[current=page]:text-ink"
        >
          {tabWords[name]}
        </Link>
      ))}
    </nav>
  );
}

function Took({
  startedAt,
  endedAt,
}: {
  readonly startedAt: string | undefined;
  readonly endedAt: string | undefined;
}) {
  const now = useNow(1_000);
  if (startedAt === undefined) return null;
  const end = endedAt === undefined ? now : Date.parse(endedAt);
  return <span className="numeric text-sm text-muted">{durationText(end - Date.parse(startedAt))}</span>;
}

function Cancel({ place }: { readonly place: RunPlace }) {
  const may = useMay();
  const [isBusy, setIsBusy] = useState(false);
  if (!may.operate) return null;
  const cancel = async () => {
    setIsBusy(true);
    await clientOf(place)
      .cancelRun(place.runId)
      .catch(() => setIsBusy(false));
  };
  return (
    <Button look="bad" disabled={isBusy} onClick={() => void cancel()}>
      <Icon of={<Square />} />
      {isBusy ? "Cancelling…" : "Cancel"}
    </Button>
  );
}
