import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronUp } from "lucide-react";
import { useDeferredValue, useMemo, useRef, useState } from "react";
import { Button, Empty, Icon, inputClass } from "../../parts/basic.js";
import { useFollowedEnd } from "../../parts/followed-end.js";
import { TerminalLineView } from "../../parts/terminal-line.js";
import { type TerminalLine, terminalLines, textOf } from "../../parts/terminal-text.js";
import { callSummary, visibleText } from "../../parts/words.js";
import type { Entry, RunSnapshot } from "../../server/run-log.js";

type Row =
  | { readonly key: string; readonly kind: "head"; readonly name: string; readonly summary: string }
  | { readonly key: string; readonly kind: "line"; readonly line: TerminalLine };

/** Characters of one entry that are shown: the last ones, as in a terminal that has scrolled. */
const maxCharacters = 400_000;

function rowsOf(entry: Entry): readonly Row[] {
  const { key } = entry;
  if (entry.kind === "message") return linesOf(key, { name: "agent", summary: "" }, entry.text);
  if (entry.kind !== "call") return [];
  const output = entry.result?.output;
  const printed = typeof output === "string" ? output : entry.printed;
  const summary = callSummary(entry.input).slice(0, 300);
  return linesOf(key, { name: visibleText(entry.name), summary }, printed);
}

function linesOf(
  key: string,
  head: { readonly name: string; readonly summary: string },
  printed: string,
): readonly Row[] {
  if (printed.trim() === "") return [];
  const shown = printed.slice(-maxCharacters);
  const cut = printed.length - shown.length;
  const summary =
    cut === 0 ? head.summary : `${head.summary} (without its first ${cut.toLocaleString()} characters)`;
  return [
    { key, kind: "head", name: head.name, summary },
    ...terminalLines(shown).map((line, index) => ({ key: `${key} ${index}`, kind: "line" as const, line })),
  ];
}

const textOfRow = (row: Row) =>
  row.kind === "head"
    ? `${row.name} ${row.summary}`
    : [...row.line.replaced, textOf(row.line.spans)].join("\n");

/** The rows of all entries; those of an entry that didn't change aren't made again. */
function useRows({ entries }: RunSnapshot): readonly Row[] {
  const rowsByEntry = useRef(new Map<string, { readonly version: number; readonly rows: readonly Row[] }>());
  return useMemo(
    () =>
      entries.flatMap((entry) => {
        const before = rowsByEntry.current.get(entry.key);
        if (before?.version === entry.version) return before.rows;
        const rows = rowsOf(entry);
        rowsByEntry.current.set(entry.key, { version: entry.version, rows });
        return rows;
      }),
    [entries],
  );
}

/** What the agent and its tools printed, as a terminal shows it, with a search. */
export function Output({
  snapshot,
  follows,
}: {
  readonly snapshot: RunSnapshot;
  /** Whether its end is shown, else its beginning. */
  readonly follows: boolean;
}) {
  const rows = useRows(snapshot);
  if (rows.length > 0) return <Log rows={rows} follows={follows} />;
  return (
    <div className="flex-1">
      <Empty title={snapshot.isLive ? "Nothing was printed so far" : "Nothing was printed"}>
        What tools and the agent print is shown here, as a terminal shows it.
      </Empty>
    </div>
  );
}

function Log({ rows, follows }: { readonly rows: readonly Row[]; readonly follows: boolean }) {
  const [typed, setTyped] = useState("");
  const match = useDeferredValue(typed.trim());
  const [chosen, setChosen] = useState(0);
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => 20,
    getItemKey: (index) => rows[index]?.key ?? index,
    overscan: 20,
    useAnimationFrameWithResizeObserver: true,
  });
  const total = virtual.getTotalSize();
  const [, setIsAtEnd] = useFollowedEnd(scroller, total, follows);
  const places = useMemo(() => {
    if (match === "") return [];
    const looked = match.toLowerCase();
    return rows.flatMap((row, index) => (textOfRow(row).toLowerCase().includes(looked) ? [index] : []));
  }, [rows, match]);
  const goTo = (next: number) => {
    if (places.length === 0) return;
    const index = (next + places.length) % places.length;
    setChosen(index);
    setIsAtEnd(false);
    virtual.scrollToIndex(places[index] ?? 0, { align: "center" });
  };
  return (
    <section aria-label="Output" className="flex min-h-0 min-w-0 flex-1 flex-col max-lg:flex-none">
      <search className="flex items-center gap-2 px-4 py-2 md:px-8">
        <input
          type="search"
          aria-label="Search the output"
          placeholder="Search the output"
          className={`${inputClass} max-w-sm`}
          value={typed}
          onChange={({ target }) => {
            setTyped(target.value);
            setChosen(-1);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") goTo(chosen + (event.shiftKey ? -1 : 1));
          }}
        />
        {match !== "" && (
          <>
            <span role="status" className="numeric text-sm whitespace-nowrap text-muted">
              {places.length === 0
                ? "Not found"
                : `${chosen < 0 ? "" : `${chosen + 1} of `}${places.length} ${places.length === 1 ? "line" : "lines"}`}
            </span>
            <Button look="quiet" aria-label="The line before" onClick={() => goTo(chosen - 1)}>
              <Icon of={<ChevronUp />} />
            </Button>
            <Button look="quiet" aria-label="The next line" onClick={() => goTo(chosen + 1)}>
              <Icon of={<ChevronDown />} />
            </Button>
          </>
        )}
      </search>
      <div
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
        tabIndex={0}
        role="log"
        aria-live="off"
        aria-label="Output"
        className="min-h-0 flex-1 overflow-y-auto px-4 pb-8 max-lg:max-h-[70vh] md:px-8"
      >
        <div className="relative font-mono text-sm" style={{ height: total }}>
          {virtual.getVirtualItems().map(({ key, index, start }) => {
            const row = rows[index];
            return (
              row !== undefined && (
                <div
                  key={key}
                  data-index={index}
                  ref={virtual.measureElement}
                  className={`absolute inset-x-0 ${index === places[chosen] ? "bg-wait-wash" : ""}`}
                  style={{ transform: `translateY(${start}px)` }}
                >
                  <RowView row={row} match={match} />
                </div>
              )
            );
          })}
        </div>
      </div>
    </section>
  );
}

function RowView({ row, match }: { readonly row: Row; readonly match: string }) {
  if (row.kind === "head")
    return (
      <p className="truncate pt-3 pb-1 text-xs text-muted">
        <span className="font-medium">{row.name}</span> {row.summary}
      </p>
    );
  return (
    <div className="min-h-5 break-words whitespace-pre-wrap">
      <TerminalLineView line={row.line} match={match} />
    </div>
  );
}
