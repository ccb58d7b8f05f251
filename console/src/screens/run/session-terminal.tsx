import { maxTerminalSide, type Terminal, type TerminalEnd, type TerminalSize } from "@ambit/client";
import { SquareTerminal, X } from "lucide-react";
import {
  type ClipboardEvent,
  type KeyboardEvent,
  memo,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { Button, ErrorNote, Icon, isMac, Spinner } from "../../parts/basic.js";
import type { Emulator, ScreenLine } from "../../parts/emulator.js";
import { sequenceOf } from "../../parts/terminal-keys.js";
import { TerminalLineView } from "../../parts/terminal-line.js";
import { visibleText } from "../../parts/words.js";
import { clientOf } from "../../server/client.js";
import type { SessionPlace } from "../../server/workspace.js";

type End = TerminalEnd | { readonly error: unknown };

/** A shell in the session of a run, between its runs. It begins when its user asks for it, since runs wait for its end. */
export function SessionTerminal({ session }: { readonly session: SessionPlace }) {
  const [isOpen, setIsOpen] = useState(false);
  const [end, setEnd] = useState<End>();
  const open = () => {
    setEnd(undefined);
    setIsOpen(true);
  };
  const close = (how?: End) => {
    setEnd(how);
    setIsOpen(false);
  };
  return (
    <section aria-label="Terminal" className="flex min-h-0 flex-1 flex-col px-4 py-4 md:px-8">
      {isOpen ? (
        <>
          <header className="mb-3 flex flex-wrap items-center gap-x-4 gap-y-2">
            <p className="text-sm text-muted">
              In the sandbox of <code>{visibleText(session.sessionId)}</code>, whose runs wait meanwhile.{" "}
              <kbd>Ctrl</kbd>+<kbd>]</kbd> ends it.
            </p>
            <Button className="ml-auto" onClick={() => close()}>
              <Icon of={<X />} />
              Close the terminal
            </Button>
          </header>
          <Screen session={session} onEnd={close} />
        </>
      ) : (
        <div className="max-w-prose space-y-3">
          {end !== undefined && <Ended end={end} />}
          <p className="text-muted">
            A shell in the session's sandbox, with its boundary: what you type is limited as its tools are,
            and no permission is asked about it. While it is open, no run has the session; the next one is
            warned that its files may have changed.
          </p>
          <Button look="primary" onClick={open}>
            <Icon of={<SquareTerminal />} />
            Open a terminal
          </Button>
        </div>
      )}
    </section>
  );
}

function Ended({ end }: { readonly end: End }) {
  if ("error" in end) return <ErrorNote error={end.error} />;
  const { exitCode, reason } = end;
  return (
    <p role="status">
      {exitCode === null
        ? `The terminal has ended: ${reason ?? "its shell was killed"}`
        : `The shell ended with ${exitCode}.`}
    </p>
  );
}

/** Ctrl+], which ends the terminal, also for those who have no mouse to leave it with. */
const leaving = "\u001d";
/** Pixels. */
const lineHeight = 18;
const least: TerminalSize = { columns: 20, rows: 5 };

function Screen({ session, onEnd }: { readonly session: SessionPlace; readonly onEnd: (end: End) => void }) {
  const host = useRef<HTMLDivElement>(null);
  const ruler = useRef<HTMLSpanElement>(null);
  const [emulator, setEmulator] = useState<Emulator>();
  const terminal = useRef<Terminal>(undefined);
  const ended = useRef(onEnd);
  ended.current = onEnd;

  useEffect(() => {
    const leave = new AbortController();
    const { signal } = leave;
    const end = (how: End) => {
      if (!signal.aborted) ended.current(how);
    };
    const run = async () => {
      // Most visits of a run need no emulator.
      const { Emulator } = await import("../../parts/emulator.js");
      const size = sizeOf(host.current, ruler.current);
      const opened = await clientOf(session).openTerminal(session.sessionId, { ...size, signal });
      const shown = new Emulator(size, (reply) => type(opened, reply));
      terminal.current = opened;
      setEmulator(shown);
      const output = opened.output();
      for (;;) {
        const { value, done } = await output.next();
        if (done) return value;
        await shown.write(value);
      }
    };
    run().then(end, (error: unknown) => end({ error }));
    return () => leave.abort();
  }, [session]);

  useEffect(() => {
    const element = host.current;
    if (emulator === undefined || element === null) return;
    const sized = new ResizeObserver(() => {
      const size = sizeOf(element, ruler.current);
      emulator.resize(size);
      const opened = terminal.current;
      opened?.resize(size).catch((error: unknown) => opened.close(reasonOf(error)));
    });
    sized.observe(element);
    return () => {
      sized.disconnect();
      emulator.close();
    };
  }, [emulator]);

  return (
    <div ref={host} className="relative min-h-80 min-w-0 flex-1 overflow-hidden font-mono text-[13px]">
      <span ref={ruler} aria-hidden className="invisible absolute">
        {"0".repeat(rulerLength)}
      </span>
      {emulator === undefined ? (
        <Spinner label="Opening the terminal" />
      ) : (
        <Lines emulator={emulator} onType={(text) => terminal.current && type(terminal.current, text)} />
      )}
    </div>
  );
}

/** What it can't take ends it: its output says so. */
function type(terminal: Terminal, text: string): void {
  if (text === leaving) terminal.close();
  else terminal.write(text).catch((error: unknown) => terminal.close(reasonOf(error)));
}

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

const rulerLength = 10;

function sizeOf(host: HTMLElement | null, ruler: HTMLElement | null): TerminalSize {
  const width = (ruler?.getBoundingClientRect().width || 80) / rulerLength;
  const { clientWidth = 640, clientHeight = 432 } = host ?? {};
  return {
    columns: sideOf(clientWidth / width, least.columns),
    rows: sideOf(clientHeight / lineHeight, least.rows),
  };
}

const sideOf = (side: number, least: number) => Math.min(Math.max(least, Math.floor(side)), maxTerminalSide);

function Lines({
  emulator,
  onType,
}: {
  readonly emulator: Emulator;
  readonly onType: (text: string) => void;
}) {
  const lines = useSyncExternalStore(emulator.subscribe, emulator.lines);
  const scrolled = useRef<HTMLDivElement>(null);
  const keyboard = useRef<HTMLTextAreaElement>(null);
  const isAtEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each picture is scrolled to, unless its reader looks back.
  useLayoutEffect(() => {
    const element = scrolled.current;
    if (element !== null && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [lines]);
  useEffect(() => keyboard.current?.focus(), []);

  const press = (event: KeyboardEvent) => {
    if (event.nativeEvent.isComposing) return;
    // A text that is selected is copied.
    const isCopy = event.ctrlKey && event.key === "c" && getSelection()?.isCollapsed === false;
    const typed = isCopy ? undefined : sequenceOf(event, { hasCursorKeys: emulator.hasCursorKeys, isMac });
    if (typed === undefined) return;
    event.preventDefault();
    isAtEnd.current = true;
    onType(typed);
  };
  /** Sends what the browser has entered: letters, also by a method that composes them. */
  const send = (field: HTMLTextAreaElement) => {
    if (field.value !== "") onType(field.value);
    field.value = "";
  };
  const paste = (event: ClipboardEvent) => {
    event.preventDefault();
    onType(emulator.pasted(event.clipboardData.getData("text/plain")));
  };
  return (
    <>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard is in its text field already */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a click anywhere goes on typing */}
      <div
        ref={scrolled}
        className="h-full overflow-y-auto leading-[18px] whitespace-pre"
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < lineHeight;
        }}
        onClick={() =>
          getSelection()?.isCollapsed !== false && keyboard.current?.focus({ preventScroll: true })
        }
      >
        <div role="log" aria-label="What the terminal shows">
          {lines.map((spans, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is its place
            <Line key={index} spans={spans} />
          ))}
        </div>
      </div>
      <textarea
        ref={keyboard}
        aria-label="Type into the terminal"
        autoCapitalize="off"
        autoComplete="off"
        autoCorrect="off"
        spellCheck={false}
        className="absolute bottom-0 left-0 h-px w-px resize-none opacity-0"
        onKeyDown={press}
        onInput={({ nativeEvent, currentTarget }) => {
          if (!(nativeEvent instanceof InputEvent && nativeEvent.isComposing)) send(currentTarget);
        }}
        onCompositionEnd={({ currentTarget }) => send(currentTarget)}
        onPaste={paste}
      />
    </>
  );
}

const Line = memo(({ spans }: { readonly spans: ScreenLine }) => (
  <div className="h-[18px]">
    <TerminalLineView line={{ spans, replaced: [] }} />
  </div>
));
