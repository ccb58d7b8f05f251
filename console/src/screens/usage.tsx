import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { Button, Empty, ErrorNote, inputClass, Spinner } from "../parts/basic.js";
import { useSession } from "../parts/session-context.js";
import {
  compactText,
  dayText,
  dollarsText,
  durationText,
  numberText,
  shareText,
  visibleText,
} from "../parts/words.js";
import { quotas, type Tally, type UsedQuota, type UsedQuotas, usage } from "../server/queries.js";
import {
  daysIn,
  type GroupedBy,
  groupings,
  rangeOf,
  ranges,
  readUsageSearch,
  type UsageSearch,
} from "./usage-search.js";

const route = getRouteApi("/usage");

const fieldClass = "w-36 grow lg:grow-0";

const runsOf = ({ runs }: Tally) => runs.completed + runs.paused + runs.cancelled + runs.failed;

/** What a chart and the totals show. */
const measures = {
  runs: { label: "Runs", amountOf: runsOf, text: numberText },
  tokens: {
    label: "Tokens",
    amountOf: ({ inputTokens, outputTokens }: Tally) => inputTokens + outputTokens,
    text: compactText,
  },
  cost: { label: "Cost", amountOf: ({ usd }: Tally) => usd, text: costText },
  time: { label: "Sandbox time", amountOf: ({ sandboxMs }: Tally) => sandboxMs, text: durationText },
} as const;
type Measure = keyof typeof measures;
const measureNames = ["runs", "tokens", "cost", "time"] as const;

function costText(usd: number) {
  return usd === 0 ? "$0" : dollarsText(usd);
}

/** What runs used, against what projects may use. */
export function UsageScreen() {
  const search: UsageSearch = route.useSearch();
  const navigate = route.useNavigate();
  const { project: ownProject } = useSession();
  const [measure, setMeasure] = useState<Measure>("runs");
  const { by = ownProject === undefined ? "project" : "harness", project } = search;
  const range = rangeOf(search, Date.now());
  const ofProject = project === undefined ? {} : { projectId: project };
  const byDay = useQuery(usage({ ...range, ...ofProject, by: "day" }));
  const grouped = useQuery(usage({ ...range, ...ofProject, by }));
  const change = (part: { readonly [Name in keyof UsageSearch]?: UsageSearch[Name] | undefined }) => {
    void navigate({ to: "/usage", search: readUsageSearch({ ...search, ...part }), replace: true });
  };
  const { data, error } = byDay;
  return (
    <div className="min-h-0 flex-1 overflow-y-auto px-4 py-4 md:px-8 md:py-6">
      <header className="flex flex-wrap items-center gap-x-6 gap-y-3">
        <h1>Use</h1>
        <Choice
          label="Days"
          options={ranges.map((days) => [days, days === 365 ? "A year" : `${days} days`])}
          chosen={search.from === undefined && search.to === undefined ? (search.days ?? 30) : undefined}
          onChoose={(days) =>
            change({ days: days === 30 ? undefined : days, from: undefined, to: undefined })
          }
        />
        <div className="flex w-full flex-wrap gap-2 lg:ml-auto lg:w-auto">
          {(["from", "to"] as const).map((end) => (
            <span key={end} className={fieldClass}>
              <input
                type="date"
                aria-label={end === "from" ? "First day" : "Last day"}
                className={`${inputClass} focus-within:outline-2 focus-within:outline-accent`}
                value={range[end]}
                onChange={({ target }) => change({ ...range, days: undefined, [end]: target.value })}
              />
            </span>
          ))}
          {ownProject === undefined && (
            <span className={fieldClass}>
              <input
                aria-label="Project"
                placeholder="Project"
                className={inputClass}
                value={project ?? ""}
                onChange={({ target }) => change({ project: target.value })}
              />
            </span>
          )}
        </div>
      </header>
      {error !== null && data === undefined ? (
        <ErrorNote error={error} retry={() => void byDay.refetch()} />
      ) : data === undefined ? (
        <Spinner label="Adding up what runs used" />
      ) : (
        <div className="max-w-5xl">
          <Totals total={data.total} measure={measure} onChoose={setMeasure} />
          {runsOf(data.total) === 0 ? (
            <Empty title="No run ended on these days">
              Choose other days, or{" "}
              <Link to="/start" className="text-accent underline underline-offset-2">
                start one
              </Link>
              .
            </Empty>
          ) : (
            <>
              <Chart days={daysIn(range)} groups={data.groups} measure={measure} />
              <section className="mt-8">
                <header className="mb-1 flex flex-wrap items-center gap-x-6 gap-y-2">
                  <h2>By</h2>
                  <Choice
                    label="Grouped by"
                    options={groupings}
                    chosen={by}
                    onChoose={(name) => change({ by: name })}
                  />
                </header>
                {grouped.data === undefined ? (
                  <Spinner label="Adding up" />
                ) : (
                  <Table by={by} groups={grouped.data.groups} total={grouped.data.total} />
                )}
              </section>
            </>
          )}
          <Quotas />
        </div>
      )}
    </div>
  );
}

function Choice<Value extends string | number>({
  label,
  options,
  chosen,
  onChoose,
}: {
  readonly label: string;
  readonly options: readonly (readonly [Value, string])[];
  readonly chosen: Value | undefined;
  readonly onChoose: (value: Value) => void;
}) {
  return (
    <div role="radiogroup" aria-label={label} className="flex max-w-full gap-1 overflow-x-auto">
      {options.map(([value, word]) => (
        // biome-ignore lint/a11y/useSemanticElements: buttons in a row, each one press
        <button
          key={value}
          type="button"
          role="radio"
          aria-checked={value === chosen}
          className="rounded-md px-3 py-1 text-sm whitespace-nowrap text-muted hover:bg-hover aria-checked:bg-hover aria-checked:font-medium aria-checked:text-ink"
          onClick={() => onChoose(value)}
        >
          {word}
        </button>
      ))}
    </div>
  );
}

/** Each total is also the choice of what the chart shows. */
function Totals({
  total,
  measure,
  onChoose,
}: {
  readonly total: Tally;
  readonly measure: Measure;
  readonly onChoose: (measure: Measure) => void;
}) {
  const { runs, inputTokens, outputTokens } = total;
  const all = runsOf(total);
  const details: Readonly<Record<Measure, string>> = {
    runs: all === 0 ? "" : `${numberText(runs.failed)} failed (${shareText(runs.failed / all)})`,
    tokens: `${compactText(inputTokens)} in, ${compactText(outputTokens)} out`,
    cost: all === 0 ? "" : `${costText(total.usd / all)} a run`,
    time: all === 0 ? "" : `${durationText(total.sandboxMs / all)} a run`,
  };
  return (
    <div
      role="radiogroup"
      aria-label="What the chart shows"
      className="mt-6 grid grid-cols-2 gap-x-6 md:grid-cols-4"
    >
      {measureNames.map((name) => (
        // biome-ignore lint/a11y/useSemanticElements: a figure that can be pressed
        <button
          key={name}
          type="button"
          role="radio"
          aria-checked={name === measure}
          className="border-b-2 border-line py-3 text-left hover:border-strong-line aria-checked:border-accent"
          onClick={() => onChoose(name)}
        >
          <span className="block text-sm text-muted">{measures[name].label}</span>
          <span className="numeric block text-xl font-semibold">
            {measures[name].text(measures[name].amountOf(total))}
          </span>
          <span className="numeric block min-h-4 text-xs text-muted">{details[name]}</span>
        </button>
      ))}
    </div>
  );
}

const chartHeight = 160;

/** A bar for each day. An invisible slider over it reads each day out: by pointer, finger and arrow keys. */
function Chart({
  days,
  groups,
  measure,
}: {
  readonly days: readonly string[];
  readonly groups: readonly (Tally & { readonly key?: string | undefined })[];
  readonly measure: Measure;
}) {
  const [chosen, setChosen] = useState<number>();
  const { label, amountOf, text } = measures[measure];
  const tallies = new Map(groups.map((group) => [group.key, group]));
  const values = days.map((day) => {
    const tally = tallies.get(day);
    return { day, value: tally === undefined ? 0 : amountOf(tally), failed: tally?.runs.failed ?? 0 };
  });
  const most = Math.max(...values.map(({ value }) => value));
  /** What happened at all can be seen. */
  const heightOf = (value: number) => (value === 0 ? 0 : Math.max(1.5, (value / most) * chartHeight));
  const wordsOf = (index: number) => {
    const { day = "", value = 0, failed = 0 } = values[index] ?? {};
    const ofThese = measure === "runs" && failed > 0 ? `, ${numberText(failed)} failed` : "";
    return `${dayText(day)}: ${text(value)}${ofThese}`;
  };
  const width = 100 / days.length;
  return (
    <figure className="mt-6">
      <figcaption className="numeric flex h-5 justify-between gap-4 text-xs text-muted">
        <span>{text(most)}</span>
        <span className="text-ink">{chosen !== undefined && wordsOf(chosen)}</span>
      </figcaption>
      <div className="relative">
        <input
          type="range"
          aria-label={`${label} by day`}
          aria-valuetext={wordsOf(chosen ?? days.length - 1)}
          min={0}
          max={days.length - 1}
          value={chosen ?? days.length - 1}
          className="peer absolute inset-0 h-full w-full cursor-crosshair opacity-0"
          onChange={({ target }) => setChosen(Number(target.value))}
          onMouseMove={({ nativeEvent: { offsetX }, currentTarget }) =>
            setChosen(
              Math.min(days.length - 1, Math.floor((offsetX / currentTarget.clientWidth) * days.length)),
            )
          }
          onMouseLeave={() => setChosen(undefined)}
          onBlur={() => setChosen(undefined)}
        />
        <svg
          viewBox={`0 0 100 ${chartHeight}`}
          preserveAspectRatio="none"
          className="h-40 w-full border-b border-strong-line peer-focus-visible:outline-2 peer-focus-visible:outline-accent"
          aria-hidden="true"
        >
          {values.map(({ day, value, failed }, index) => {
            const x = index * width + width * 0.1;
            const failedHeight = measure === "runs" ? heightOf(failed) : 0;
            return (
              <g key={day}>
                <rect
                  x={index * width}
                  y={0}
                  width={width}
                  height={chartHeight}
                  className={index === chosen ? "fill-hover" : "fill-transparent"}
                />
                <rect
                  x={x}
                  y={chartHeight - heightOf(value)}
                  width={width * 0.8}
                  height={heightOf(value)}
                  className="fill-accent"
                />
                <rect
                  x={x}
                  y={chartHeight - failedHeight}
                  width={width * 0.8}
                  height={failedHeight}
                  className="fill-bad"
                />
              </g>
            );
          })}
        </svg>
      </div>
      <p className="flex justify-between pt-1 text-xs text-muted">
        <span>{dayText(days[0] ?? "")}</span>
        {measure === "runs" && (
          <span className="flex gap-4">
            <Key colour="bg-accent">Runs</Key>
            <Key colour="bg-bad">Failed</Key>
          </span>
        )}
        <span>{dayText(days.at(-1) ?? "")}</span>
      </p>
    </figure>
  );
}

function Key({ colour, children }: { readonly colour: string; readonly children: ReactNode }) {
  return (
    <span className="flex items-center gap-1">
      <span className={`size-2 rounded-sm ${colour}`} />
      {children}
    </span>
  );
}

const nameless: Readonly<Record<GroupedBy, string>> = {
  project: "No project",
  harness: "Unknown",
  model: "Unknown model",
  day: "",
};

function Table({
  by,
  groups,
  total,
}: {
  readonly by: GroupedBy;
  readonly groups: readonly (Tally & { readonly key?: string | undefined })[];
  readonly total: Tally;
}) {
  const number = "numeric px-3 py-2 text-right";
  const heads = ["Runs", "Failed", "Tokens in", "Tokens out", "Cost", "Sandbox time"];
  const nameOf = ({ key }: { readonly key?: string | undefined }) =>
    key === undefined ? nameless[by] : by === "day" ? dayText(key) : visibleText(key);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls sideways on a phone
    <section className="overflow-x-auto" aria-label="Table of use" tabIndex={0}>
      <table className="w-full text-sm">
        <thead>
          <tr className="border-b border-line text-xs text-muted">
            <th scope="col" className="py-2 pr-3 text-left font-normal">
              {groupings.find(([name]) => name === by)?.[1]}
            </th>
            {heads.map((head) => (
              <th key={head} scope="col" className="px-3 py-2 text-right font-normal whitespace-nowrap">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {groups.map((group) => (
            <tr key={group.key ?? ""} className="border-b border-line">
              <th scope="row" className="max-w-56 truncate py-2 pr-3 text-left font-medium">
                {nameOf(group)}
              </th>
              <td className={number}>{numberText(runsOf(group))}</td>
              <td className={`${number} ${group.runs.failed > 0 ? "text-bad" : "text-muted"}`}>
                {numberText(group.runs.failed)}
              </td>
              <td className={number}>{compactText(group.inputTokens)}</td>
              <td className={number}>{compactText(group.outputTokens)}</td>
              <td className={number}>{costText(group.usd)}</td>
              <td className={`${number} whitespace-nowrap`}>{durationText(group.sandboxMs)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {groups.reduce((sum, group) => sum + runsOf(group), 0) < runsOf(total) && (
        <p className="py-2 text-sm text-muted">The 1,000 with the most runs; the totals have all.</p>
      )}
    </section>
  );
}

function Quotas() {
  const { data, error, refetch } = useQuery(quotas);
  if (data === undefined)
    return error === null ? null : (
      <p role="alert" className="mt-8 text-sm text-bad">
        The quotas can't be read. <Button onClick={() => void refetch()}>Try again</Button>
      </p>
    );
  return (
    <section className="mt-8 text-sm">
      <h2>Quotas now</h2>
      {data.length === 0 && (
        <p className="mt-1 text-muted">
          No project has a token of its own, so none has a quota: <code>tokens</code> of the configuration
          gives it both.
        </p>
      )}
      <ul>
        {data.map((project) => (
          <li key={project.projectId} className="border-b border-line py-3">
            <p className="font-medium">{visibleText(project.projectId)}</p>
            <ProjectQuotas quotas={project} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function ProjectQuotas({
  quotas: { concurrentRuns, runsPerMinute, sessions, usdPerDay },
}: {
  readonly quotas: UsedQuotas;
}) {
  const bars = [
    ["Concurrent runs", concurrentRuns, numberText],
    ["Runs a minute", runsPerMinute, numberText],
    ["Open sessions", sessions, numberText],
    ["Dollars today", usdPerDay, costText],
  ] as const;
  const limited = bars.flatMap(([label, quota, text]) =>
    quota === undefined ? [] : [{ label, quota, text }],
  );
  if (limited.length === 0) return <p className="text-muted">No quota.</p>;
  return (
    <div className="mt-2 grid gap-x-8 gap-y-3 sm:grid-cols-2 lg:grid-cols-4">
      {limited.map(({ label, quota, text }) => (
        <QuotaBar key={label} label={label} quota={quota} text={text} />
      ))}
    </div>
  );
}

function QuotaBar({
  label,
  quota: { limit, used },
  text,
}: {
  readonly label: string;
  readonly quota: UsedQuota;
  readonly text: (value: number) => string;
}) {
  const share = Math.min(1, used / limit);
  const colour = share >= 1 ? "bg-bad" : share >= 0.8 ? "bg-wait" : "bg-accent";
  return (
    <div>
      <p className="flex justify-between gap-2">
        <span className="text-muted">{label}</span>
        <span className="numeric">
          {text(used)} of {text(limit)}
        </span>
      </p>
      <meter className="sr-only" aria-label={label} min={0} max={limit} value={used}>
        {text(used)} of {text(limit)}
      </meter>
      <div className="mt-1 h-1.5 overflow-hidden rounded-full bg-hover" aria-hidden="true">
        <div className={`h-full rounded-full ${colour}`} style={{ width: `${100 * share}%` }} />
      </div>
      <p className={`numeric mt-1 text-xs ${share >= 1 ? "text-bad" : "text-muted"}`}>
        {share >= 1 ? "Used up" : `${text(limit - used)} left`}
      </p>
    </div>
  );
}
