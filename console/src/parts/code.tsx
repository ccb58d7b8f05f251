import { Check, Copy } from "lucide-react";
import { Fragment, type ReactNode, useMemo, useState } from "react";
import { TerminalLineView } from "./terminal-line.js";
import { terminalLines } from "./terminal-text.js";
import { exactText } from "./words.js";

/** Characters that are shown before someone wants more. */
const firstCharacters = 4_000;

/** A text that scrolls where it is long, by keyboard too. */
function Scrollable({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    <section aria-label={label} tabIndex={0} className="max-h-96 overflow-auto">
      <pre className="text-sm break-words whitespace-pre-wrap">{children}</pre>
    </section>
  );
}

/** Text as it is, of any length, with line breaks; of a program, with its colours. */
export function Plain({
  text,
  label,
  isPrinted = false,
}: {
  readonly text: string;
  readonly label: string;
  readonly isPrinted?: boolean;
}) {
  const [isWhole, setIsWhole] = useState(false);
  const shown = isWhole ? text : text.slice(0, firstCharacters);
  return (
    <div>
      <Scrollable label={label}>{isPrinted ? <Printed text={shown} /> : exactText(shown)}</Scrollable>
      {shown.length < text.length && (
        <button type="button" className="mt-1 text-sm text-accent" onClick={() => setIsWhole(true)}>
          Show all {text.length.toLocaleString()} characters
        </button>
      )}
    </div>
  );
}

function Printed({ text }: { readonly text: string }) {
  const lines = useMemo(() => terminalLines(text), [text]);
  return lines.map((line, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: lines never move
    <Fragment key={index}>
      {index > 0 && "\n"}
      <TerminalLineView line={line} />
    </Fragment>
  ));
}

/** JSON in which keys, texts and numbers are told apart. */
export function Json({ value, label }: { readonly value: unknown; readonly label: string }) {
  const text = exactText(JSON.stringify(value, undefined, 2) ?? "undefined");
  if (text.length > 20_000) return <Plain text={text} label={label} />;
  return <Scrollable label={label}>{[...coloured(text)]}</Scrollable>;
}

const token = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\b\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b/g;

function* coloured(text: string): Generator<ReactNode> {
  let end = 0;
  for (const match of text.matchAll(token)) {
    const [whole, quoted, colon] = match;
    yield text.slice(end, match.index);
    end = match.index + whole.length;
    const kind =
      quoted === undefined
        ? /^[tfn]/.test(whole)
          ? "hljs-literal"
          : "hljs-number"
        : colon === undefined
          ? "hljs-string"
          : "hljs-attr";
    yield (
      <span key={match.index} className={kind}>
        {whole}
      </span>
    );
  }
  yield text.slice(end);
}

export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setIsCopied(true);
    setTimeout(() => setIsCopied(false), 1_500);
  };
  return (
    <button
      type="button"
      title={label}
      aria-label={isCopied ? "Copied" : label}
      className="inline-flex size-6 items-center justify-center rounded text-muted hover:bg-hover hover:text-ink"
      onClick={() => void copy()}
    >
      {isCopied ? <Check className="size-4" aria-hidden /> : <Copy className="size-4" aria-hidden />}
    </button>
  );
}
