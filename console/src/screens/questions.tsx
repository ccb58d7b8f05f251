import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { Button, Empty, ErrorNote, Kbd, Spinner } from "../parts/basic.js";
import { useMay } from "../parts/session-context.js";
import { OutcomeMark } from "../parts/status.js";
import { momentText, plainCode, shortId, visibleText } from "../parts/words.js";
import { client, clientOf, type Interaction } from "../server/client.js";
import { lookMs, openQuestions } from "../server/queries.js";
import { isOver, QuestionCard } from "./question-card.js";

const noQuestions: readonly Interaction[] = [];

/** Open questions, the oldest first, answered by mouse or by keyboard. */
export function QuestionsScreen() {
  const { data, error, refetch } = useQuery(openQuestions);
  const [current, setCurrent] = useState<string>();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const answer = useRef<((approved: boolean) => void) | undefined>(undefined);
  const list = useRef<HTMLOListElement>(null);
  const open = data ?? noQuestions;
  const index = Math.max(
    0,
    open.findIndex(({ id }) => id === current),
  );
  const currentId = open[index]?.id;
  const chosen = open.filter(({ id, kind }) => kind === "user_approval" && selected.has(id));
  const many = useAnswerMany(() => setSelected(new Set()));
  const toggle = (id: string) => setSelected((before) => before.symmetricDifference(new Set([id])));
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
      } else if (event.key === "x" && currentId !== undefined) toggle(currentId);
      else if (event.key === "a" || event.key === "d") {
        const approved = event.key === "a";
        if (chosen.length > 0) many.mutate({ questions: chosen, approved });
        else answer.current?.(approved);
      }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  });
  return (
    <div className="min-h-0 flex-1 overflow-y-auto px-4 py-4 md:px-8 md:py-6">
      <header className="flex flex-wrap items-baseline gap-x-6 gap-y-2">
        <h1>Questions</h1>
        {open.length > 0 && (
          <p className="hidden text-sm text-muted md:block">
            <Kbd>j</Kbd> <Kbd>k</Kbd> choose · <Kbd>x</Kbd> select · <Kbd>a</Kbd> approve · <Kbd>d</Kbd> deny
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
              <li key={question.id} className="flex gap-3">
                <Selection
                  question={question}
                  isSelected={selected.has(question.id)}
                  toggle={() => toggle(question.id)}
                />
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
        {chosen.length > 0 && (
          <section
            aria-label="Selected questions"
            className="sticky bottom-0 mt-4 flex flex-wrap items-center gap-3 rounded-lg border border-line bg-raised p-3 text-sm shadow-lg"
          >
            <span className="font-medium">{chosen.length} selected</span>
            {[true, false].map((approved) => (
              <Button
                key={String(approved)}
                look={approved ? "good" : "bad"}
                disabled={many.isPending}
                onClick={() => many.mutate({ questions: chosen, approved })}
              >
                {approved ? "Approve" : "Deny"} {chosen.length} <Kbd>{approved ? "a" : "d"}</Kbd>
              </Button>
            ))}
            <Button look="quiet" onClick={() => setSelected(new Set())}>
              Clear
            </Button>
          </section>
        )}
        {many.isError && <ErrorNote error={many.error} />}
        <Past />
      </div>
    </div>
  );
}

/** An approval can be given together with others. */
function Selection({
  question: { kind, payload },
  isSelected,
  toggle,
}: {
  readonly question: Interaction;
  readonly isSelected: boolean;
  readonly toggle: () => void;
}) {
  const may = useMay();
  if (!may.answer) return null;
  if (kind !== "user_approval") return <span className="w-4 shrink-0" />;
  return (
    <input
      type="checkbox"
      aria-label={`Select the question about ${visibleText(payload.toolName ?? "a tool")}`}
      className="mt-5 size-4 shrink-0 accent-accent"
      checked={isSelected}
      onChange={toggle}
    />
  );
}

interface Decision {
  readonly questions: readonly Interaction[];
  readonly approved: boolean;
}

/** Answers approvals together. One that someone else answered meanwhile is theirs. */
function useAnswerMany(onAnswered: () => void) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async ({ questions, approved }: Decision) => {
      const answers = await Promise.allSettled(
        questions.map((question) => clientOf(question).answer(question.runId, question.id, { approved })),
      );
      const failure = answers.find((answer) => answer.status === "rejected" && !isOver(answer.reason));
      if (failure?.status === "rejected") throw failure.reason;
    },
    onSuccess: onAnswered,
    onSettled: () => cache.invalidateQueries({ queryKey: openQuestions.queryKey }),
  });
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
          {data.map((question) => (
            <PastQuestion key={question.id} question={question} />
          ))}
        </ul>
      )}
    </section>
  );
}

/** What became of a question: the decision, by whom, and when. */
function PastQuestion({
  question: { state, kind, payload, runId, projectId, createdAt, answeredAt, answeredBy },
}: {
  readonly question: Interaction;
}) {
  const isDenied = answeredBy?.approved === false;
  const tone = isDenied ? "bad" : stateTones[state];
  const word = isDenied ? "denied" : answeredBy?.approved === true ? "approved" : state;
  const endedAt = answeredAt ?? createdAt;
  return (
    <li className="flex flex-wrap items-center gap-x-4 border-b border-line py-2">
      <span className="w-28">
        <OutcomeMark outcome={{ tone, word, kind: stateKinds[tone] }} />
      </span>
      <code>{visibleText(payload.toolName ?? plainCode(kind))}</code>
      {answeredBy !== undefined && (
        <span className="truncate">by {visibleText(answeredBy.user ?? callerWords[answeredBy.caller])}</span>
      )}
      <Link
        to="/runs/$runId"
        params={{ runId }}
        search={projectId === undefined ? {} : { project: projectId }}
        className="text-accent underline underline-offset-2"
      >
        Run {shortId(visibleText(runId))}
      </Link>
      <time className="ml-auto text-muted" dateTime={endedAt}>
        {momentText(endedAt)}
      </time>
    </li>
  );
}

const callerWords = { operator: "the operator", tenant: "its project", page: "its user's page" } as const;
