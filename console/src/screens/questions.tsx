import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { Button, Empty, ErrorNote, Kbd, Spinner } from "../parts/basic.js";
import { OutcomeMark } from "../parts/status.js";
import { momentText, plainCode, shortId, visibleText } from "../parts/words.js";
import { client, type Interaction } from "../server/client.js";
import { lookMs, openQuestions } from "../server/queries.js";
import { QuestionCard } from "./question-card.js";

const noQuestions: readonly Interaction[] = [];

/** Open questions, the oldest first, answered by mouse or by keyboard. */
export function QuestionsScreen() {
  const { data, error, refetch } = useQuery(openQuestions);
  const [current, setCurrent] = useState<string>();
  const answer = useRef<((approved: boolean) => void) | undefined>(undefined);
  const list = useRef<HTMLOListElement>(null);
  const open = data ?? noQuestions;
  const index = Math.max(
    0,
    open.findIndex(({ id }) => id === current),
  );
  const currentId = open[index]?.id;
  answer.current = undefined;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLElement && event.target.closest("input, textarea, select");
      if (isTyping || event.metaKey || event.ctrlKey || event.altKey) return;
      const step = { j: 1, k: -1 }[event.key];
      if (step !== undefined) {
        const next = open[index + step];
        if (next === undefined) return;
        setCurrent(next.id);
        list.current?.children[index + step]?.scrollIntoView({ block: "nearest" });
      } else if (event.key === "a" || event.key === "d") answer.current?.(event.key === "a");
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, [open, index]);
  return (
    <div className="min-h-0 flex-1 overflow-y-auto px-4 py-4 md:px-8 md:py-6">
      <header className="flex flex-wrap items-baseline gap-x-6 gap-y-2">
        <h1>Questions</h1>
        {open.length > 0 && (
          <p className="hidden text-sm text-muted md:block">
            <Kbd>j</Kbd> <Kbd>k</Kbd> choose · <Kbd>a</Kbd> approve · <Kbd>d</Kbd> deny
          </p>
        )}
      </header>
      <div className="mt-4 max-w-4xl">
        {data === undefined && error !== null ? (
          <ErrorNote error={error} retry={() => void refetch()} />
        ) : data === undefined ? (
          <Spinner label="Reading the questions" />
        ) : open.length === 0 ? (
          <Empty title="Nothing waits for you">
            What a run asks its user appears here: calls to approve, forms to fill in, results of client
            tools.
          </Empty>
        ) : (
          <ol ref={list} className="space-y-4">
            {open.map((question) => (
              <li key={question.id}>
                <QuestionCard
                  question={question}
                  hasRun
                  isCurrent={question.id === currentId}
                  registerAnswer={(call) => {
                    answer.current = call;
                  }}
                />
              </li>
            ))}
          </ol>
        )}
        <Past />
      </div>
    </div>
  );
}

const stateTones = {
  open: "wait",
  answered: "good",
  claimed: "good",
  used: "good",
  unknown: "wait",
  expired: "bad",
  withdrawn: "muted",
} as const;

const stateKinds = {
  good: "completed",
  wait: "waiting",
  bad: "failed",
  muted: "cancelled",
} as const;

/** Rows of what was answered, or expired. */
const pastRows = 50;

function Past() {
  const [isShown, setIsShown] = useState(false);
  const { data, error } = useQuery({
    queryKey: ["questions", "past"],
    queryFn: async ({ signal }) => {
      const states = ["answered", "used", "expired", "withdrawn", "unknown"];
      const pages = await Promise.all(
        states.map((state) => client.interactions({ state, limit: pastRows, signal })),
      );
      return pages
        .flatMap(({ interactions }) => interactions)
        .toSorted((one, other) => other.createdAt.localeCompare(one.createdAt))
        .slice(0, pastRows);
    },
    enabled: isShown,
    refetchInterval: isShown ? lookMs : false,
  });
  return (
    <section className="mt-8">
      <Button look="quiet" className="-ml-3" aria-expanded={isShown} onClick={() => setIsShown(!isShown)}>
        {isShown ? "Hide what is over" : "Show what was answered, or expired"}
      </Button>
      {isShown && error !== null && <ErrorNote error={error} />}
      {isShown && data?.length === 0 && <p className="mt-2 text-sm text-muted">Nothing yet.</p>}
      {isShown && data !== undefined && data.length > 0 && (
        <ul className="mt-2 text-sm">
          {data.map(({ id, state, kind, payload, runId, createdAt }) => {
            const tone = stateTones[state];
            return (
              <li key={id} className="flex flex-wrap items-center gap-x-4 border-b border-line py-2">
                <span className="w-28">
                  <OutcomeMark outcome={{ tone, word: state, kind: stateKinds[tone] }} />
                </span>
                <code>{visibleText(payload.toolName ?? plainCode(kind))}</code>
                <code className="text-muted">{shortId(visibleText(runId))}</code>
                <time className="ml-auto text-muted" dateTime={createdAt}>
                  {momentText(createdAt)}
                </time>
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}
