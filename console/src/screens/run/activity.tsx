import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, CircleX } from "lucide-react";
import { useEffect, useLayoutEffect, useRef, useState } from "react";
import { Button, Icon, Spinner } from "../../parts/basic.js";
import type { RunPlace } from "../../server/client.js";
import type { RunSnapshot } from "../../server/run-log.js";
import { EntryView } from "./entry.js";
import { Outcome } from "./run-outcome.js";

/** Pixels from the end within which a reader counts as being there. */
const nearEnd = 80;

/** What happened, in order: a reader at the end stays there while it goes on. */
export function Activity({
  place,
  snapshot,
  follows,
}: {
  readonly place: RunPlace;
  readonly snapshot: RunSnapshot;
  /** Whether it was under way when its page was opened: then its end is shown, else its beginning. */
  readonly follows: boolean;
}) {
  const { entries, result, isLive } = snapshot;
  const scroller = useRef<HTMLDivElement>(null);
  const [isAtEnd, setIsAtEnd] = useState(follows);
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
  useLayoutEffect(() => {
    const element = scroller.current;
    if (follows && isAtEnd && element !== null && total > 0) element.scrollTop = element.scrollHeight;
  }, [total, follows, isAtEnd]);
  const errors = entries.findIndex(
    (entry) => entry.kind === "error" || (entry.kind === "call" && entry.result?.isError === true),
  );
  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const look = () => setIsAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight < nearEnd);
    element.addEventListener("scroll", look, { passive: true });
    return () => element.removeEventListener("scroll", look);
  }, []);
  // What is read of an ended run makes it longer, without a scroll.
  const isShort = total < (scroller.current?.clientHeight ?? 0);
  const hasMore = !isAtEnd && !isShort;
  return (
    <section aria-label="Activity" className="relative flex min-h-0 min-w-0 flex-1 flex-col max-lg:flex-none">
      <div
        ref={scroller}
        className="min-h-0 flex-1 overflow-y-auto px-4 pt-4 pb-14 max-lg:max-h-[70vh] md:px-8"
      >
        {entries.length === 0 && isLive && <Spinner label="Waiting for its first words" />}
        <ol className="relative" style={{ height: total }}>
          {rows.getVirtualItems().map(({ key, index, start }) => {
            const entry = entries[index];
            return (
              <li
                key={key}
                data-index={index}
                ref={rows.measureElement}
                className="absolute inset-x-0 pb-3"
                style={{ transform: `translateY(${start}px)` }}
              >
                {entry === undefined ? (
                  <Outcome snapshot={snapshot} />
                ) : (
                  <EntryView entry={entry} version={entry.version} place={place} hasEnded={!isLive} />
                )}
              </li>
            );
          })}
        </ol>
      </div>
      <div className="pointer-events-none absolute inset-x-0 bottom-3 flex justify-center gap-2">
        {errors !== -1 && result !== undefined && (
          <Button
            className="pointer-events-auto bg-ground shadow"
            onClick={() => rows.scrollToIndex(errors, { align: "start" })}
          >
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
