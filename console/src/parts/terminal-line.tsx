import { useState } from "react";
import type { TerminalLine, TerminalStyle } from "./terminal-text.js";

const colourClasses = {
  bad: "text-bad",
  good: "text-good",
  wait: "text-wait",
  accent: "text-accent",
} as const;

function classOf(style: TerminalStyle) {
  const { colour, isBold, isDim, isItalic, isUnderlined, isStruck, isInverse, isCursor } = style;
  const names = [
    colour === undefined ? isDim && "text-muted" : colourClasses[colour],
    isBold && "font-semibold",
    isItalic && "italic",
    isUnderlined && "underline",
    isStruck && "line-through",
    isInverse && "bg-hover",
    isCursor && "bg-ink text-ground",
  ].filter((name) => typeof name === "string");
  return names.length === 0 ? undefined : names.join(" ");
}

/** A line of a program's output. @param match a text that is marked in it */
export function TerminalLineView({
  line,
  match = "",
}: {
  readonly line: TerminalLine;
  readonly match?: string;
}) {
  const [isOpen, setIsOpen] = useState(false);
  const { spans, replaced } = line;
  return (
    <>
      {isOpen &&
        replaced.map((text, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same text may come twice, and none ever moves
          <span key={index} className="block text-muted">
            {text}
          </span>
        ))}
      {spans.map(({ text, style }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: parts of a line never move
        <span key={index} className={classOf(style)}>
          {match === "" ? text : [...marked(text, match)]}
        </span>
      ))}
      {replaced.length > 0 && (
        <button
          type="button"
          aria-expanded={isOpen}
          className="ml-2 rounded bg-hover px-1 text-xs text-muted select-none hover:text-ink"
          onClick={() => setIsOpen(!isOpen)}
        >
          {isOpen ? "hide" : `replaced ${replaced.length} ${replaced.length === 1 ? "text" : "texts"}`}
        </button>
      )}
    </>
  );
}

function* marked(text: string, match: string) {
  const lower = text.toLowerCase();
  const looked = match.toLowerCase();
  let end = 0;
  // A letter whose small form has another length would move every place.
  const isSafe = lower.length === text.length;
  for (let at = isSafe ? lower.indexOf(looked) : -1; at !== -1; at = lower.indexOf(looked, end)) {
    yield text.slice(end, at);
    end = at + looked.length;
    yield (
      <mark key={at} className="rounded bg-wait-wash text-ink outline outline-wait">
        {text.slice(at, end)}
      </mark>
    );
  }
  yield text.slice(end);
}
