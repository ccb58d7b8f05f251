import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, CircleX } from "lucide-react";
import { useEffect, useRef } from "react";
import { Button, Icon, Spinner } from "../../parts/basic.js";
import { useFollowedEnd } from "../../parts/followed-end.js";
import { Moment } from "../../parts/moment.js";
import { visibleText } from "../../parts/words.js";
import type { RunPlace } from "../../server/client.js";
import type { ChosenEntry, Entry, RunSnapshot } from "../../server/run-log.js";
import { EntryView } from "./entry.js";
import { Outcome } from "./run-outcome.js";

/** What happened, in order: a reader at the end stays there while it goes on. */
export function Activity({
  place,
  snapshot,
  follows,
  chosen,
  onChoose,
}: {
  readonly place: RunPlace;
  readonly snapshot: RunSnapshot;
  /** Whether it was under way when its page was opened: then its end is shown, else its beginning. */
  readonly follows: boolean;
  readonly chosen: ChosenEntry | undefined;
  /** An entry is to be shown, by its key. */
  readonly onChoose: (entry: string) => void;
}) {
  const { entries, isLive, stages, stage } = snapshot;
  const beganAt = stages[0]?.beganAt;
  const scroller = useRef<HTMLDivElement>(null);
  const count = entries.length + 1;
  const rows = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => 40,
    getItemKey: (index) => entries[index]?.key ?? "end",
    overscan: 6,
    useAnimationFrameWithResizeObserver: true,
  });
  const total = rows.getTotalSize();
  const [isAtEnd, setIsAtEnd] = useFollowedEnd(scroller, total, follows);
  const indexOfChosen = chosen === undefined ? -1 : entries.findIndex(({ key }) => key === chosen.key);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a wish is fulfilled once, however many entries follow
  useEffect(() => {
    if (indexOfChosen === -1) return;
    setIsAtEnd(false);
    rows.scrollToIndex(indexOfChosen, { align: "center" });
  }, [chosen]);
  const firstError = entries.find(
    (entry) => entry.kind === "error" || (entry.kind === "call" && entry.result?.isError === true),
  );
  // What is read of an ended run makes it longer, without a scroll.
  const isShort = total < (scroller.current?.clientHeight ?? 0);
  const hasMore = !isAtEnd && !isShort;
  return (
    <section aria-label="Activity" className="relative flex min-h-0 min-w-0 flex-1 flex-col max-lg:flex-none">
      <div
        ref={scroller}
        className="min-h-0 flex-1 overflow-y-auto px-4 pt-4 pb-14 max-lg:max-h-[70vh] md:px-8"
      >
        {isLive && entries.length === 0 && (
          <Spinner label={stage === undefined ? "Waiting for its first words" : visibleText(stage)} />
        )}
        <ol className="relative" style={{ height: total }}>
          {rows.getVirtualItems().map(({ key, index, start }) => {
            const entry = entries[index];
            return (
              <li
                key={key}
                data-index={index}
                ref={rows.measureElement}
                className="absolute inset-x-0 pb-3 md:grid md:grid-cols-[4.75rem_minmax(0,1fr)] md:gap-x-3"
                style={{ transform: `translateY(${start}px)` }}
              >
                {entry?.at !== undefined && beganAt !== undefined && isTimed(entry) ? (
                  <Moment at={entry.at} beganAt={beganAt} before={entries[index - 1]?.at} />
                ) : (
                  <span className="max-md:hidden" />
                )}
                {entry === undefined ? (
                  <Outcome snapshot={snapshot} />
                ) : (
                  <div style={{ paddingLeft: `${Math.min(entry.depth, 6) * 1.25}rem` }}>
                    <EntryView
                      entry={entry}
                      version={entry.version}
                      place={place}
                      hasEnded={!isLive}
                      chosen={indexOfChosen === index ? chosen : undefined}
                    />
                  </div>
                )}
              </li>
            );
          })}
        </ol>
      </div>
      <div className="pointer-events-none absolute inset-x-0 bottom-3 flex justify-center gap-2">
        {firstError !== undefined && (
          <Button className="pointer-events-auto bg-ground shadow" onClick={() => onChoose(firstError.key)}>
            <Icon of={<CircleX />} />
            First error
          </Button>
        )}
        {hasMore && (
          <Button
            className="pointer-events-auto bg-ground shadow"
            onClick={() => {
              rows.scrollToIndex(count - 1, { align: "end" });
              setIsAtEnd(true);
            }}
          >
            <Icon of={<ArrowDown />} />
            {isLive ? "Follow" : "To the end"}
          </Button>
        )}
      </div>
    </section>
  );
}

/** A blank message takes no room. */
const isTimed = (entry: Entry) => entry.kind !== "message" || entry.text.trim() !== "";
