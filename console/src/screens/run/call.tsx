import { Check, ChevronRight, Hand, ShieldX, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { Icon } from "../../parts/basic.js";
import { Json, Plain } from "../../parts/code.js";
import { Changes } from "../../parts/diff.js";
import { callSummary, durationText, visibleText } from "../../parts/words.js";
import type { RunPlace } from "../../server/client.js";
import type { ChosenEntry, Entry } from "../../server/run-log.js";
import { QuestionInRun } from "./question-in-run.js";

type Call = Extract<Entry, { kind: "call" }>;

function stateOf({ result, question }: Call, hasEnded: boolean) {
  if (result?.denied) return { icon: <ShieldX />, tone: "text-bad", word: "denied" };
  if (result?.isError) return { icon: <X />, tone: "text-bad", word: "failed" };
  if (result !== undefined) return { icon: <Check />, tone: "text-good", word: "done" };
  if (question?.state === "open") return { icon: <Hand />, tone: "text-wait", word: "waits for an answer" };
  if (hasEnded) return { icon: <X />, tone: "text-muted", word: "without a result" };
  return undefined;
}

export function CallView({
  call,
  place,
  hasEnded,
  chosen,
}: {
  readonly call: Call;
  readonly place: RunPlace;
  readonly hasEnded: boolean;
  readonly chosen: ChosenEntry | undefined;
}) {
  const [isOpen, setIsOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (chosen === undefined) return;
    setIsOpen(true);
    button.current?.focus({ preventScroll: true });
  }, [chosen]);
  const state = stateOf(call, hasEnded);
  const { name, input, at, endedAt, result, question } = call;
  return (
    <div className="text-sm">
      <button
        ref={button}
        type="button"
        aria-expanded={isOpen}
        className="group flex w-full items-center gap-2 rounded-md text-left"
        onClick={() => setIsOpen(!isOpen)}
      >
        {state === undefined ? (
          <span className="size-4 shrink-0 animate-spin rounded-full border-2 border-line border-t-accent" />
        ) : (
          <span className={state.tone}>
            <Icon of={state.icon} />
          </span>
        )}
        <span className="shrink-0 font-mono font-medium">{visibleText(name)}</span>
        <span className="truncate font-mono text-muted">{callSummary(input).slice(0, 300)}</span>
        <span className="sr-only">{state?.word ?? "under way"}</span>
        <span className="ml-auto flex shrink-0 items-center gap-2 pl-2 text-xs text-muted">
          {result?.denied && <span className="text-bad">denied</span>}
          {at !== undefined && endedAt !== undefined && (
            <span className="numeric">{durationText(endedAt - at)}</span>
          )}
          <ChevronRight
            className={`size-4 opacity-60 group-hover:opacity-100 ${isOpen ? "rotate-90" : ""}`}
            aria-hidden
          />
        </span>
      </button>
      {isOpen && <CallDetail call={call} />}
      {question !== undefined && question.state === "open" && result === undefined && (
        <div className="mt-2">
          <QuestionInRun question={question} place={place} />
        </div>
      )}
      {question !== undefined && question.state !== "open" && isOpen && <Decision question={question} />}
    </div>
  );
}

function Decision({ question }: { readonly question: NonNullable<Call["question"]> }) {
  const { state, answer, kind } = question;
  const words =
    state === "expired"
      ? "Its question expired without an answer."
      : kind === "user_approval"
        ? `Its user ${answer?.approved === false ? "denied" : "approved"} it.`
        : "Its user answered it.";
  return <p className="mt-2 border-l-2 border-line pl-4 text-muted">{words}</p>;
}

function CallDetail({ call }: { readonly call: Call }) {
  const { input, result, printed, name } = call;
  const { output, changes, data } = result ?? {};
  const said = typeof output === "string" ? output : undefined;
  return (
    <div className="mt-2 space-y-3 border-l-2 border-line pl-4">
      {input !== undefined && (
        <div>
          <p className="mb-1 text-xs text-muted">Arguments</p>
          <Json value={input} label={`Arguments of ${visibleText(name)}`} />
        </div>
      )}
      {changes !== undefined && changes.length > 0 && <Changes changes={changes} />}
      {result === undefined && printed !== "" && <Plain text={printed} label="Output so far" isPrinted />}
      {result !== undefined && (
        <div>
          <p className={`mb-1 text-xs ${result.isError ? "text-bad" : "text-muted"}`}>
            {result.isError ? "Error" : "Result"}
          </p>
          {said === undefined ? (
            <Json value={output ?? data ?? null} label="Result" />
          ) : (
            <Plain text={said === "" ? "(nothing)" : said} label="Result" isPrinted />
          )}
        </div>
      )}
    </div>
  );
}
