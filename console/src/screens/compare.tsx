import type { RunRequest } from "@ambit/client";
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { diffArrays } from "diff";
import { ArrowLeft } from "lucide-react";
import { type ReactNode, useMemo, useState, useSyncExternalStore } from "react";
import { Empty, ErrorNote, Icon, Spinner } from "../parts/basic.js";
import { promises } from "../parts/capabilities.js";
import { Changes, Patch, usualLook } from "../parts/diff.js";
import { confinementOf, outcomeOf } from "../parts/outcome.js";
import { ConfinementMark, OutcomeMark, UnconfinedBanner } from "../parts/status.js";
import {
  callSummary,
  dollarsText,
  durationText,
  exactText,
  momentText,
  numberText,
  shortId,
  visibleText,
} from "../parts/words.js";
import { client, type Receipt, type RunInfo, type RunPlace } from "../server/client.js";
import { patch, runInfo, runRequest } from "../server/queries.js";
import type { Entry, RunLog, RunSnapshot } from "../server/run-log.js";
import { type CompareSearch, placeOfA, placeOfB } from "./compare-search.js";
import { anew, requestFileOf } from "./run/request-forms.js";
import { useRunLog } from "./run/use-run-log.js";

const route = getRouteApi("/compare");

/** Runs that are offered for a comparison. */
const maxOffered = 100;

export function CompareScreen() {
  const search = route.useSearch();
  const [a, b] = [placeOfA(search), placeOfB(search)];
  return (
    <div className="min-h-0 flex-1 overflow-y-auto">
      <header className="flex items-center gap-4 px-4 py-4 md:px-8 md:py-6">
        <Link
          to="/runs"
          aria-label="All runs"
          className="-ml-2 rounded-md p-2 text-muted hover:bg-hover hover:text-ink"
        >
          <Icon of={<ArrowLeft />} />
        </Link>
        <h1>Compare two runs</h1>
      </header>
      {a === undefined || b === undefined ? <Choice search={search} /> : <Both a={a} b={b} />}
    </div>
  );
}

/** The runs that the missing one may be. */
function Choice({ search }: { readonly search: CompareSearch }) {
  const first = placeOfA(search);
  const { data, error } = useQuery({
    queryKey: ["runs", "to compare"],
    queryFn: ({ signal }) => client.runs({ limit: maxOffered, signal }),
  });
  if (error !== null) return <ErrorNote error={error} />;
  if (data === undefined) return <Spinner label="Reading the runs" />;
  const offered = data.runs.filter(
    ({ runId, projectId }) => runId !== first?.runId || projectId !== first.projectId,
  );
  if (offered.length === 0)
    return <Empty title="There is no other run">A comparison needs two: start another one.</Empty>;
  return (
    <section className="px-4 pb-8 md:px-8">
      <h2 className="mb-2">
        {first === undefined ? "The first of them" : `With ${shortId(visibleText(first.runId))}`}
      </h2>
      <ul aria-label="Runs to compare with">
        {offered.map(({ runId, projectId, harness, createdAt }) => (
          <li key={`${projectId} ${runId}`} className="border-b border-line">
            <Link
              to="/compare"
              search={
                first === undefined
                  ? { a: runId, ...(projectId === undefined ? {} : { aProject: projectId }) }
                  : { ...search, b: runId, ...(projectId === undefined ? {} : { bProject: projectId }) }
              }
              className="flex items-baseline gap-3 py-2 text-sm hover:bg-hover"
            >
              <span className="font-medium">{visibleText(harness)}</span>
              <code className="truncate text-muted">{visibleText(runId)}</code>
              <time className="ml-auto whitespace-nowrap text-muted" dateTime={createdAt}>
                {momentText(createdAt)}
              </time>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface ReadRun {
  readonly place: RunPlace;
  readonly info: RunInfo;
  readonly snapshot: RunSnapshot;
  readonly receipt: Receipt | undefined;
}

function Both({ a, b }: { readonly a: RunPlace; readonly b: RunPlace }) {
  const [logA, logB] = [useRunLog(a), useRunLog(b)];
  if (logA === undefined || logB === undefined) return null;
  return <Followed a={a} b={b} logA={logA} logB={logB} />;
}

function Followed({
  a,
  b,
  logA,
  logB,
}: {
  readonly a: RunPlace;
  readonly b: RunPlace;
  readonly logA: RunLog;
  readonly logB: RunLog;
}) {
  const [one, other] = [useReadRun(a, logA), useReadRun(b, logB)];
  if ("error" in one) return <ErrorNote error={one.error} />;
  if ("error" in other) return <ErrorNote error={other.error} />;
  if ("isPending" in one || "isPending" in other) return <Spinner label="Reading both runs" />;
  return <Comparison a={one} b={other} />;
}

function useReadRun(
  place: RunPlace,
  log: RunLog,
): ReadRun | { readonly error: unknown } | { readonly isPending: true } {
  const snapshot = useSyncExternalStore(log.subscribe, log.snapshot);
  const { data: info, error } = useQuery(runInfo(place, !snapshot.isLive));
  if (info === undefined) return error === null ? { isPending: true } : { error };
  return { place, info, snapshot, receipt: snapshot.result?.receipt ?? info.result?.receipt };
}

interface Pair {
  readonly a: ReadRun;
  readonly b: ReadRun;
}

function Comparison({ a, b }: Pair) {
  return (
    <div className="space-y-8 pb-8">
      <div className="-space-y-px">
        {[a, b].map(({ place: { runId, projectId }, receipt }) => (
          <UnconfinedBanner
            key={`${projectId} ${runId}`}
            receipt={receipt}
            name={shortId(visibleText(runId))}
          />
        ))}
      </div>
      <div className="space-y-8 px-4 text-sm md:px-8">
        <Facts a={a} b={b} />
        <Requests a={a} b={b} />
        <Guarantees a={a} b={b} />
        <Calls a={a} b={b} />
        <FinalMessage a={a} b={b} />
        <ChangedFiles a={a} b={b} />
      </div>
    </div>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section>
      <h2 className="mb-2">{title}</h2>
      {children}
    </section>
  );
}

const columns = "grid grid-cols-2 gap-x-4 md:grid-cols-[10rem_1fr_1fr]";

/** A line of both runs. One that differs is marked, by a word for those who don't see the colour. */
function Row({
  term,
  a,
  b,
  differs,
}: {
  readonly term: string;
  readonly a: ReactNode;
  readonly b: ReactNode;
  readonly differs: boolean;
}) {
  return (
    <div className={`${columns} border-b border-line py-1.5 ${differs ? "bg-wait-wash" : ""}`}>
      <dt className="col-span-2 text-muted md:col-span-1 md:pl-2">
        {term}
        {differs && <span className="sr-only"> (differs)</span>}
      </dt>
      <dd className="numeric min-w-0 break-words">{a}</dd>
      <dd className="numeric min-w-0 break-words">{b}</dd>
    </div>
  );
}

function RunName({ place: { runId, projectId }, info: { harness } }: ReadRun) {
  return (
    <Link
      to="/runs/$runId"
      params={{ runId }}
      search={projectId === undefined ? {} : { project: projectId }}
      className="truncate font-medium text-accent underline underline-offset-2"
    >
      {visibleText(harness)} <code>{shortId(visibleText(runId))}</code>
    </Link>
  );
}

const outcomeOfRun = ({ info, snapshot }: ReadRun) =>
  outcomeOf(snapshot.isLive ? info.state : "ended", snapshot.result ?? info.result, 0);

/** What is told of a run in one line, if there is anything to tell. */
const lines: readonly (readonly [term: string, textOf: (run: ReadRun) => string | undefined])[] = [
  ["Model", ({ snapshot }) => snapshot.result?.model],
  ["Sandbox", ({ info }) => info.sandbox],
  ["Session", ({ info }) => info.sessionId],
  ["Project", ({ info }) => info.projectId],
  ["Began", ({ info }) => momentText(info.startedAt ?? info.createdAt)],
  [
    "Took",
    ({ info: { startedAt, endedAt } }) =>
      startedAt === undefined || endedAt === undefined
        ? undefined
        : durationText(Date.parse(endedAt) - Date.parse(startedAt)),
  ],
  ["Tokens in", ({ snapshot }) => numberOf(snapshot.result?.usage?.input)],
  ["Tokens out", ({ snapshot }) => numberOf(snapshot.result?.usage?.output)],
  [
    "Cost",
    ({ snapshot: { result } }) =>
      result?.usage?.cost === undefined ? undefined : dollarsText(result.usage.cost),
  ],
  ["Calls", ({ snapshot }) => numberText(callsOf(snapshot).length)],
];

const numberOf = (value: number | undefined) => (value === undefined ? undefined : numberText(value));

/** Terms in which two runs always differ, so that it says nothing. */
const ownTerms: ReadonlySet<string> = new Set(["Began", "Took"]);

function Facts({ a, b }: Pair) {
  const outcomes = [outcomeOfRun(a), outcomeOfRun(b)] as const;
  const boundaries = [confinementOf(a.receipt), confinementOf(b.receipt)] as const;
  return (
    <Part title="Runs">
      <dl>
        <Row term="Run" a={<RunName {...a} />} b={<RunName {...b} />} differs={false} />
        <Row
          term="Outcome"
          a={<OutcomeMark outcome={outcomes[0]} />}
          b={<OutcomeMark outcome={outcomes[1]} />}
          differs={outcomes[0].word !== outcomes[1].word}
        />
        <Row
          term="Boundary"
          a={<ConfinementMark receipt={a.receipt} />}
          b={<ConfinementMark receipt={b.receipt} />}
          differs={boundaries[0].kind !== boundaries[1].kind}
        />
        {lines.map(([term, textOf]) => {
          const [textA, textB] = [textOf(a), textOf(b)];
          if (textA === undefined && textB === undefined) return null;
          return (
            <Row
              key={term}
              term={term}
              a={visibleText(textA ?? "–")}
              b={visibleText(textB ?? "–")}
              differs={!ownTerms.has(term) && textA !== textB}
            />
          );
        })}
      </dl>
    </Part>
  );
}

/** What both were begun with, as far as it is kept and their reader may read it. */
function Requests({ a, b }: Pair) {
  const [ofA, ofB] = [useQuery(runRequest(a.place)), useQuery(runRequest(b.place))];
  if (ofA.isLoading || ofB.isLoading) return <Spinner label="Reading the requests" />;
  const missing = [
    { run: a, error: ofA.error },
    { run: b, error: ofB.error },
  ].filter(({ error }) => error !== null);
  const [textA, textB] = [requestTextOf(ofA.data), requestTextOf(ofB.data)];
  return (
    <Part title="What they were begun with">
      {missing.map(({ run, error }) => (
        <p key={`${run.place.projectId} ${run.place.runId}`} className="text-muted">
          Without <code>{shortId(visibleText(run.place.runId))}</code>: {visibleText(error?.message ?? "")}
        </p>
      ))}
      {missing.length === 0 &&
        (textA === textB ? (
          <p className="text-muted">Both had the same request.</p>
        ) : (
          <Changes changes={[{ path: "request.json", oldText: textA, newText: textB }]} look={usualLook()} />
        ))}
    </Part>
  );
}

const requestTextOf = (request: RunRequest | undefined) =>
  request === undefined ? "" : exactText(requestFileOf(anew(request)));

/** Who guarantees what, where that isn't the same of both. */
function Guarantees({ a, b }: Pair) {
  const [givenByA, givenByB] = [giversOf(a.receipt), giversOf(b.receipt)];
  const capabilities = [...new Set([...givenByA.keys(), ...givenByB.keys()])];
  const differing = capabilities.filter(
    (capability) => givenByA.get(capability) !== givenByB.get(capability),
  );
  return (
    <Part title="Guarantees">
      {differing.length === 0 ? (
        <p className="text-muted">
          {capabilities.length === 0
            ? "Neither run has any."
            : `Both have the same ${numberText(capabilities.length)}, by the same actors.`}
        </p>
      ) : (
        <dl>
          {differing.map((capability) => (
            <Row
              key={capability}
              term={promises[capability]}
              a={givenByA.get(capability) ?? "not guaranteed"}
              b={givenByB.get(capability) ?? "not guaranteed"}
              differs
            />
          ))}
        </dl>
      )}
    </Part>
  );
}

function giversOf(receipt: Receipt | undefined) {
  const givers = new Map<Receipt["required"][number], string>();
  for (const { capability, by } of receipt?.guarantees ?? []) givers.set(capability, visibleText(by));
  return givers;
}

type Call = Extract<Entry, { kind: "call" }>;

const callsOf = ({ entries }: RunSnapshot): readonly Call[] =>
  entries.flatMap((entry) => (entry.kind === "call" && !entry.isSetup ? [entry] : []));

const nameOfCall = ({ name, input }: Call) => `${visibleText(name)} ${callSummary(input)}`;

/** Both runs' calls in their order: the same ones beside each other. */
function Calls({ a, b }: Pair) {
  const rows = useMemo(
    () => [...besideEachOther(callsOf(a.snapshot), callsOf(b.snapshot))],
    [a.snapshot, b.snapshot],
  );
  return (
    <Part title="Calls, in order">
      {rows.length === 0 && <p className="text-muted">Neither run made one.</p>}
      <ol>
        {rows.map(([ofA, ofB]) => (
          <li
            key={`${ofA?.key} ${ofB?.key}`}
            className={`grid grid-cols-2 gap-x-4 border-b border-line py-1.5 ${ofA === undefined || ofB === undefined ? "bg-wait-wash" : ""}`}
          >
            <CallCell call={ofA} />
            <CallCell call={ofB} />
          </li>
        ))}
      </ol>
    </Part>
  );
}

function CallCell({ call }: { readonly call: Call | undefined }) {
  if (call === undefined) return <span className="pl-2 text-muted">not made</span>;
  const { name, input, at, endedAt, result } = call;
  const state = result?.denied ? "denied" : result?.isError ? "failed" : undefined;
  return (
    <span className="flex min-w-0 gap-2 pl-2">
      <span className="min-w-0 truncate font-mono" title={nameOfCall(call)}>
        <span className="font-medium">{visibleText(name)}</span>{" "}
        <span className="text-muted">{callSummary(input).slice(0, 200)}</span>
      </span>
      <span className="ml-auto flex shrink-0 gap-2 text-xs text-muted">
        {state !== undefined && <span className="text-bad">{state}</span>}
        {at !== undefined && endedAt !== undefined && (
          <span className="numeric">{durationText(endedAt - at)}</span>
        )}
      </span>
    </span>
  );
}

/** Pure. */
function* besideEachOther(
  a: readonly Call[],
  b: readonly Call[],
): Generator<readonly [Call | undefined, Call | undefined]> {
  const parts = diffArrays(a.map(nameOfCall), b.map(nameOfCall), { maxEditLength: 2_000 }) ?? [
    { count: a.length, added: false, removed: true },
    { count: b.length, added: true, removed: false },
  ];
  let [atA, atB] = [0, 0];
  for (const { count = 0, added, removed } of parts)
    for (let step = 0; step < count; step += 1) {
      yield [added ? undefined : a[atA], removed ? undefined : b[atB]];
      if (!added) atA += 1;
      if (!removed) atB += 1;
    }
}

function FinalMessage({ a, b }: Pair) {
  const [textA, textB] = [outputOf(a), outputOf(b)];
  return (
    <Part title="What it said">
      {textA === textB ? (
        <p className="text-muted">{textA === "" ? "Neither run said anything." : "Both said the same."}</p>
      ) : (
        <Changes changes={[{ path: "output.md", oldText: textA, newText: textB }]} look={usualLook()} />
      )}
    </Part>
  );
}

const outputOf = ({ info, snapshot }: ReadRun) => snapshot.result?.output ?? info.result?.output ?? "";

function ChangedFiles({ a, b }: Pair) {
  const [changesA, changesB] = [changesOf(a), changesOf(b)];
  const ofA = useQuery({ ...patch(a.place), enabled: changesA.size > 0 });
  const ofB = useQuery({ ...patch(b.place), enabled: changesB.size > 0 });
  const [patchesA, patchesB] = [byFile(ofA.data), byFile(ofB.data)];
  const paths = [...new Set([...changesA.keys(), ...changesB.keys()])].toSorted();
  if (paths.length === 0)
    return (
      <Part title="Changed files">
        <p className="text-muted">
          Neither run has a patch with changes: a request asks for it with{" "}
          <code>{'"outputs": {"patch": true}'}</code>.
        </p>
      </Part>
    );
  if (ofA.isLoading || ofB.isLoading) return <Spinner label="Reading the changes" />;
  return (
    <Part title="Changed files">
      {paths.map((path) => {
        const [textA, textB] = [patchesA.get(path), patchesB.get(path)];
        const [wordA, wordB] = [changesA.get(path), changesB.get(path)];
        return (
          <ChangedFile
            key={path}
            path={path}
            a={{ word: wordA, text: textA }}
            b={{ word: wordB, text: textB }}
          />
        );
      })}
    </Part>
  );
}

/** What a run did to a file. */
interface FileChange {
  readonly word: string | undefined;
  /** Its part of the patch. */
  readonly text: string | undefined;
}

function ChangedFile({
  path,
  a,
  b,
}: {
  readonly path: string;
  readonly a: FileChange;
  readonly b: FileChange;
}) {
  const [isOpen, setIsOpen] = useState(false);
  const isSame = a.text === b.text;
  return (
    <details
      className={`border-b border-line py-1.5 ${isSame ? "" : "bg-wait-wash"}`}
      onToggle={(event) => setIsOpen(event.currentTarget.open)}
    >
      <summary className="cursor-pointer pl-2">
        <code>{visibleText(path)}</code>
        <span className="ml-3 text-muted">
          {isSame
            ? `${a.word ?? "changed"} by both, in the same way`
            : `${a.word ?? "not changed"} · ${b.word ?? "not changed"}`}
        </span>
      </summary>
      {isOpen && (
        <div className="mt-2 grid gap-4 bg-ground md:grid-cols-2">
          {[a, b].map(({ text }, at) => (
            <div key={at === 0 ? "a" : "b"} className="min-w-0 overflow-x-auto">
              {text === undefined ? (
                <p className="text-muted">not changed</p>
              ) : (
                <Patch text={text} look="unified" />
              )}
            </div>
          ))}
        </div>
      )}
    </details>
  );
}

const changesOf = ({ receipt }: ReadRun): ReadonlyMap<string, string> =>
  new Map(receipt?.outputs?.patch?.changes.map(({ path, change }) => [path, change]) ?? []);

/** The part of a patch about each file, by its path. Pure. */
function byFile(text = ""): ReadonlyMap<string, string> {
  const parts = text.split(/^(?=diff --git )/m).filter((part) => part.startsWith("diff --git "));
  return new Map(
    parts.map((part) => [/^diff --git (?:"?a\/.*?"?) "?b\/(.*?)"?$/m.exec(part)?.[1] ?? part, part]),
  );
}
