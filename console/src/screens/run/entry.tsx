import { ChevronRight, FileDown, Lightbulb, ShieldCheck, ShieldX, TriangleAlert } from "lucide-react";
import { memo, type ReactElement, type ReactNode, useState } from "react";
import { Icon } from "../../parts/basic.js";
import { Json } from "../../parts/code.js";
import { Markdown } from "../../parts/markdown.js";
import { bytesText, plainCode, visibleText } from "../../parts/words.js";
import type { RunPlace } from "../../server/client.js";
import type { ChosenEntry, Entry } from "../../server/run-log.js";
import { CallView } from "./call.js";
import { QuestionInRun } from "./question-in-run.js";

interface EntryViewProps {
  readonly entry: Entry;
  /** Grows with each change of the entry, which stays the same object. */
  readonly version: number;
  readonly place: RunPlace;
  readonly hasEnded: boolean;
  /** Set while a reader wants to see it: another object is another wish. */
  readonly chosen: ChosenEntry | undefined;
}

export const EntryView = memo(function EntryView({ entry, place, hasEnded, chosen }: EntryViewProps) {
  switch (entry.kind) {
    case "message":
      return entry.text.trim() === "" ? null : <Markdown text={entry.text} />;
    case "thought":
      return (
        <Foldable icon={<Lightbulb />} title="Thought" hint={visibleText(entry.text)}>
          <div className="text-muted">
            <Markdown text={entry.text} />
          </div>
        </Foldable>
      );
    case "call":
      return <CallView call={entry} place={place} hasEnded={hasEnded} chosen={chosen} />;
    case "question":
      return <QuestionInRun question={entry.question} place={place} />;
    case "decision": {
      const { target, allowed, reason, count, failure } = entry.decision;
      const isGood = allowed && failure === undefined;
      return (
        <p className={`flex gap-2 text-sm ${isGood ? "text-muted" : "text-bad"}`}>
          <span className="mt-0.5">
            <Icon of={isGood ? <ShieldCheck /> : <ShieldX />} />
          </span>
          <span className="break-words">
            {allowed
              ? failure === undefined
                ? "Connected to "
                : "Couldn't connect to "
              : "Refused a connection to "}
            <code className="font-medium">{visibleText(target)}</code>
            {count > 1 ? ` (${count} times)` : ""}: {visibleText(failure ?? reason)}
          </span>
        </p>
      );
    }
    case "file": {
      const { path, url, size } = entry.file;
      return (
        <p className="flex gap-2 text-sm text-muted">
          <Icon of={<FileDown />} />
          <span className="truncate">
            <code className="text-ink">{visibleText(path ?? url)}</code>
            {size === undefined ? "" : `, ${bytesText(size)}`}
          </span>
        </p>
      );
    }
    case "error":
      return (
        <p role="alert" className="flex gap-2 text-sm text-bad">
          <span className="mt-0.5">
            <Icon of={<TriangleAlert />} />
          </span>
          <span className="break-words whitespace-pre-wrap">{entry.message}</span>
        </p>
      );
    case "note":
      return (
        <Foldable
          title={plainCode(visibleText(entry.title))}
          hint={visibleText(JSON.stringify(entry.data) ?? "")}
        >
          <Json value={entry.data} label={entry.title} />
        </Foldable>
      );
  }
});

function Foldable({
  icon,
  title,
  hint,
  children,
}: {
  readonly icon?: ReactElement<{ className?: string }>;
  readonly title: string;
  readonly hint: string;
  readonly children: ReactNode;
}) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <div className="text-sm">
      <button
        type="button"
        aria-expanded={isOpen}
        className="flex w-full items-center gap-2 rounded text-left text-muted hover:text-ink"
        onClick={() => setIsOpen(!isOpen)}
      >
        <Icon of={icon ?? <ChevronRight />} />
        <span className="shrink-0">{title}</span>
        {!isOpen && <span className="truncate opacity-80">{hint.slice(0, 200)}</span>}
      </button>
      {isOpen && <div className="mt-2 border-l-2 border-line pl-4">{children}</div>}
    </div>
  );
}
