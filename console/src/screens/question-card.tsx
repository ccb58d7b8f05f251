import { AmbitError } from "@ambit/client";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useState } from "react";
import { Button, ErrorNote, inputClass, Kbd } from "../parts/basic.js";
import { Json, Plain } from "../parts/code.js";
import { Changes } from "../parts/diff.js";
import { useMay } from "../parts/session-context.js";
import { shortId, visibleText } from "../parts/words.js";
import { clientOf, type Interaction } from "../server/client.js";
import { openQuestions } from "../server/queries.js";
import { AnswerForm, fieldsIn } from "./answer-form.js";

export type AskedQuestion = Pick<Interaction, "id" | "runId" | "projectId" | "kind" | "payload">;

type Answer = Parameters<ReturnType<typeof clientOf>["answer"]>[2];

/** Answers one question. What another person answered meanwhile is said, and isn't an error. */
export function useAnswer({ id, runId, projectId }: AskedQuestion) {
  const cache = useQueryClient();
  return useMutation({
    mutationFn: async (answer: Answer) => {
      await clientOf({ projectId }).answer(runId, id, answer);
    },
    onSettled: () => cache.invalidateQueries({ queryKey: openQuestions.queryKey }),
  });
}

/** Whether an answer came too late: someone else's was faster, or the question is over. */
export const isOver = (error: unknown) =>
  error instanceof AmbitError && [404, 409, 410].includes(error.status ?? 0);

/** A question with exactly what it is about, and the ways to answer it. */
export function QuestionCard({
  question,
  hasRun = false,
  isCurrent = false,
  registerAnswer,
}: {
  readonly question: AskedQuestion;
  /** Whether its run is named. */
  readonly hasRun?: boolean;
  /** Whether keys answer it. */
  readonly isCurrent?: boolean;
  readonly registerAnswer?: (answer: ((approved: boolean) => void) | undefined) => void;
}) {
  const may = useMay();
  const answering = useAnswer(question);
  const { kind, payload, runId, projectId } = question;
  const wasOver = isOver(answering.error);
  const isDone = answering.isSuccess || wasOver;
  if (isCurrent && kind === "user_approval")
    registerAnswer?.(
      may.answer && !isDone && !answering.isPending
        ? (approved) => answering.mutate({ approved })
        : undefined,
    );
  const name = visibleText(payload.toolName ?? "a tool");
  return (
    <section
      aria-label={`Question about ${name}`}
      className={`min-w-0 flex-1 rounded-lg bg-wait-wash p-4 text-sm ${isCurrent ? "outline-2 outline-wait" : ""}`}
    >
      <p className="flex flex-wrap items-baseline gap-x-2">
        <span className="font-medium">{titleOf(question)}</span>
        {payload.server !== undefined && (
          <span className="text-muted">of the MCP server {visibleText(payload.server)}</span>
        )}
        {hasRun && (
          <Link
            to="/runs/$runId"
            params={{ runId }}
            search={projectId === undefined ? {} : { project: projectId }}
            className="ml-auto text-accent underline underline-offset-2"
          >
            Run {shortId(visibleText(runId))}
          </Link>
        )}
      </p>
      <div className="mt-3">
        <Subject question={question} />
      </div>
      {payload.earlierOutcome === "unknown" && (
        <p className="mt-3 font-medium text-wait">
          This call was made before, and what became of it isn't known: approving makes it again.
        </p>
      )}
      {payload.expiresAt !== undefined && (
        <p className="mt-3 text-muted">Expires {new Date(payload.expiresAt).toLocaleString()}.</p>
      )}
      <div className="mt-3">
        {wasOver ? (
          <Over question={question} />
        ) : answering.isSuccess ? (
          <p role="status">Your answer was sent.</p>
        ) : may.answer ? (
          <Answers
            question={question}
            isCurrent={isCurrent}
            isBusy={answering.isPending}
            send={answering.mutate}
          />
        ) : (
          <p className="text-muted">Your role may read questions, not answer them.</p>
        )}
        {answering.isError && !wasOver && <ErrorNote error={answering.error} />}
      </div>
    </section>
  );
}

/** Who was faster, where the server knows. */
function Over({ question: { id, runId, projectId } }: { readonly question: AskedQuestion }) {
  const { data } = useQuery({
    queryKey: ["questions", "of", projectId, runId],
    queryFn: async ({ signal }) =>
      (await clientOf({ projectId }).interactions({ runId, signal })).interactions,
  });
  const answeredBy = data?.find((question) => question.id === id)?.answeredBy;
  if (answeredBy?.user === undefined)
    return <p role="status">Someone else answered it already, or it is over.</p>;
  const verb = { true: "approved", false: "denied", undefined: "answered" }[`${answeredBy.approved}`];
  return (
    <p role="status">
      {visibleText(answeredBy.user)} {verb} it already.
    </p>
  );
}

function titleOf({ kind, payload }: AskedQuestion): ReactNode {
  const name = <code className="font-semibold">{visibleText(payload.toolName ?? "a tool")}</code>;
  switch (kind) {
    case "user_approval":
      return <>May the agent call {name}?</>;
    case "client_tool":
      return <>The agent calls {name}: what is its result?</>;
    case "user_input":
      return <>{visibleText(messageIn(payload.input) ?? "The agent needs something from you")}</>;
  }
}

function messageIn(input: unknown): string | undefined {
  if (typeof input !== "object" || input === null || !("message" in input)) return undefined;
  return typeof input.message === "string" ? input.message : undefined;
}

/** A command as a command, changes as changes, anything else exactly as it would be sent. */
function Subject({ question: { kind, payload } }: { readonly question: AskedQuestion }) {
  const { input, changes = [], toolName = "the call" } = payload;
  const command =
    typeof input === "object" && input !== null && "command" in input && typeof input.command === "string"
      ? input.command
      : undefined;
  const isOnlyCommand =
    command !== undefined && typeof input === "object" && input !== null && Object.keys(input).length === 1;
  if (kind === "user_input") return <UrlToVisit input={input} />;
  return (
    <div className="space-y-3">
      {changes.length > 0 && <Changes changes={changes} />}
      {isOnlyCommand ? (
        <div className="flex gap-2 font-mono">
          <span aria-hidden className="text-muted select-none">
            $
          </span>
          <Plain text={command} label="Command" />
        </div>
      ) : (
        changes.length === 0 &&
        input !== undefined && <Json value={input} label={`Arguments of ${visibleText(toolName)}`} />
      )}
    </div>
  );
}

function UrlToVisit({ input }: { readonly input: unknown }) {
  if (typeof input !== "object" || input === null || !("url" in input)) return null;
  const url = String(input.url);
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ""))
    return <code className="break-all">{visibleText(url)}</code>;
  return (
    <a
      href={url}
      target="_blank"
      rel="noreferrer noopener"
      className="break-all text-accent underline underline-offset-2"
    >
      {url}
    </a>
  );
}

function Answers({
  question,
  isCurrent,
  isBusy,
  send,
}: {
  readonly question: AskedQuestion;
  readonly isCurrent: boolean;
  readonly isBusy: boolean;
  readonly send: (answer: Answer) => void;
}) {
  const { kind, payload } = question;
  if (kind === "user_approval")
    return (
      <div className="flex flex-wrap gap-2">
        <Button look="good" className="bg-ground" disabled={isBusy} onClick={() => send({ approved: true })}>
          Approve {isCurrent && <Kbd>a</Kbd>}
        </Button>
        <Button look="bad" className="bg-ground" disabled={isBusy} onClick={() => send({ approved: false })}>
          Deny {isCurrent && <Kbd>d</Kbd>}
        </Button>
      </div>
    );
  if (kind === "user_input") {
    const fields = fieldsIn(payload.input);
    if (fields === undefined) return <p>This page can't show its form: answer it by another client.</p>;
    return (
      <AnswerForm
        fields={fields}
        isBusy={isBusy}
        onSubmit={(output) => send({ output })}
        onDecline={() => send({ output: "declined", isError: true })}
      />
    );
  }
  return <ToolResult isBusy={isBusy} send={send} />;
}

/** The result of a client tool: JSON where it is JSON, else a text. */
function ToolResult({ isBusy, send }: { readonly isBusy: boolean; readonly send: (answer: Answer) => void }) {
  const [text, setText] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    send({ output: jsonOrText(text) });
  };
  const value = jsonOrText(text);
  return (
    <form className="space-y-2" onSubmit={submit}>
      <textarea
        aria-label="Result"
        rows={3}
        required
        spellCheck={false}
        placeholder={'{"seat": "12A"}'}
        className={`${inputClass} font-mono`}
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <div className="flex flex-wrap items-center gap-2">
        <Button look="primary" type="submit" disabled={isBusy || text === ""}>
          Send the result
        </Button>
        <Button
          disabled={isBusy}
          className="bg-ground"
          onClick={() => send({ output: "The user declined.", isError: true })}
        >
          Decline
        </Button>
        <span className="text-muted">
          {text === "" ? "" : typeof value === "string" ? "as a text" : "as JSON"}
        </span>
      </div>
    </form>
  );
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
