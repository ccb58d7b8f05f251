import { AmbitError, type RunRequest } from "@ambit/client";
import { useMutation, useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { CircleCheck, CircleX, Play } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useEffect, useState } from "react";
import { Button, ErrorNote, Icon, inputClass, Kbd, Spinner } from "../parts/basic.js";
import { promises } from "../parts/capabilities.js";
import { useMay } from "../parts/session-context.js";
import { shortId, visibleText } from "../parts/words.js";
import { client } from "../server/client.js";
import { type ChosenFolder, withFolder, withNamesOf } from "../server/folder.js";
import { runRequest } from "../server/queries.js";
import { anew, hidden } from "./run/request-forms.js";
import { FolderDrop } from "./start-folder.js";

const route = getRouteApi("/start");

/** Milliseconds after the last key before a request is planned. */
const pauseMs = 400;

const user = (...lines: readonly string[]) => [{ role: "user" as const, content: lines.join("\n") }];
const confined = { network: "off", filesystem: "workspace" } as const;

const examples: readonly { readonly title: string; readonly request: RunRequest }[] = [
  {
    title: "A confined turn",
    request: {
      harness: "demo",
      messages: user("say Let me look.", "write notes/today.md # Today", "run ls -R .", "say Done."),
      permissions: { default: "allow" },
      sandboxPermission: confined,
      outputs: { patch: true },
    },
  },
  {
    title: "One that asks first",
    request: {
      harness: "demo",
      sessionId: "review",
      messages: user("say I ask before I run something.", "run! ls -la", "say Thank you."),
      permissions: { default: "ask" },
      sandboxPermission: confined,
      interactions: { waitMs: 600_000 },
    },
  },
  {
    title: "One connection allowed",
    request: {
      harness: "demo",
      messages: user("fetch https://example.com/", "fetch https://example.org/"),
      permissions: { default: "allow" },
      sandboxPermission: { network: { allowlist: ["example.com"] }, filesystem: "workspace" },
    },
  },
];

const textOf = (request: RunRequest | undefined) => JSON.stringify(request, undefined, 2);

type Reading = { readonly request: RunRequest } | { readonly problem: string };

/** A request as it was typed. The server checks its fields: its contract is the only one. */
function read(text: string): Reading {
  try {
    return { request: JSON.parse(text) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** A request, planned as it is typed: every gap and issue is shown before it starts. */
export function StartScreen() {
  const { again: runId, project: projectId } = route.useSearch();
  const earlier = useQuery({
    ...runRequest({ runId: runId ?? "", projectId }),
    enabled: runId !== undefined,
    select: anew,
  });
  if (runId === undefined) return <Editor key="" first={examples[0]?.request} />;
  if (earlier.isError) return <ErrorNote error={earlier.error} />;
  if (earlier.data === undefined) return <Spinner label="Reading the request" />;
  return <Editor key={runId} first={earlier.data} runId={runId} />;
}

function Editor({
  first,
  runId,
}: {
  readonly first: RunRequest | undefined;
  /** The run whose request it is. Default: it is the first example. */
  readonly runId?: string;
}) {
  const may = useMay();
  const navigate = useNavigate();
  const [text, setText] = useState(() => textOf(first) ?? "");
  const [folder, setFolder] = useState<ChosenFolder>();
  const settled = useSettled(text);
  const reading = read(settled);
  const plan = useQuery({
    queryKey: ["plan", settled, folder],
    queryFn: async ({ signal }) => {
      if ("problem" in reading) throw new Error(reading.problem);
      return await client.plan(withNamesOf(reading.request, folder), { signal });
    },
    enabled: "request" in reading,
    retry: false,
  });
  const starting = useMutation({
    mutationFn: async () => {
      const current = read(text);
      if ("problem" in current) throw new Error(current.problem);
      return await client.start(withFolder(current.request, folder));
    },
    onSuccess: ({ runId }) => navigate({ to: "/runs/$runId", params: { runId }, search: {} }),
  });
  const hasGaps = text.includes(hidden);
  const isReady = settled === text && plan.isSuccess && !hasGaps && may.operate && !starting.isPending;
  const press = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.metaKey || event.ctrlKey) && isReady) starting.mutate();
  };
  return (
    <div className="flex min-h-0 flex-1 flex-col overflow-y-auto lg:flex-row lg:overflow-hidden">
      <FolderDrop
        folder={folder}
        onFolder={setFolder}
        className="flex min-w-0 flex-1 flex-col gap-3 px-4 py-4 md:px-8 md:py-6"
      >
        <header className="flex flex-wrap items-center gap-x-4 gap-y-2">
          <h1>Start a run</h1>
          <div className="w-full md:ml-auto md:w-56">
            <select
              aria-label="Example"
              className={inputClass}
              defaultValue={runId === undefined ? "0" : ""}
              onChange={({ target: { value } }) =>
                setText(textOf(value === "" ? first : examples[Number(value)]?.request) ?? text)
              }
            >
              {runId !== undefined && <option value="">As run {shortId(visibleText(runId))}</option>}
              {examples.map(({ title }, at) => (
                <option key={title} value={at}>
                  {title}
                </option>
              ))}
            </select>
          </div>
        </header>
        <textarea
          aria-label="The request, as JSON"
          spellCheck={false}
          className={`${inputClass} min-h-96 flex-1 resize-none p-3 font-mono`}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={press}
        />
      </FolderDrop>
      <section
        aria-label="Plan"
        className="shrink-0 space-y-4 border-t border-line px-4 py-4 text-sm md:px-8 lg:w-96 lg:overflow-y-auto lg:border-t-0 lg:border-l lg:px-6 lg:py-6"
      >
        {may.operate ? (
          <p className="flex items-center gap-3">
            <Button look="primary" disabled={!isReady} onClick={() => starting.mutate()}>
              <Icon of={<Play />} />
              {starting.isPending ? "Starting…" : "Start the run"}
            </Button>
            <span className="hidden md:inline">
              <Kbd>Ctrl</Kbd> <Kbd>Enter</Kbd>
            </span>
          </p>
        ) : (
          <p className="text-muted">Your role may plan a request, not start it.</p>
        )}
        {hasGaps && (
          <p role="alert" className="text-wait">
            Secrets aren't kept with a run: fill in each <code>{hidden}</code>.
          </p>
        )}
        {starting.error !== null && <ErrorNote error={starting.error} />}
        <div aria-live="polite">
          {"problem" in reading ? (
            <Refusal title="This isn't JSON">
              <p>{reading.problem}</p>
            </Refusal>
          ) : plan.isPending ? (
            <Spinner label="Planning" />
          ) : plan.isError ? (
            <Problems error={plan.error} />
          ) : (
            <Planned plan={plan.data.plan} />
          )}
        </div>
      </section>
    </div>
  );
}

/** A text once it has stayed the same for a while. */
function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), pauseMs);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

function Refusal({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div className="space-y-2">
      <p className="flex items-center gap-2 font-medium text-bad">
        <Icon of={<CircleX />} />
        {title}
      </p>
      {children}
    </div>
  );
}

function Problems({ error }: { readonly error: unknown }) {
  const { gaps, issues } = error instanceof AmbitError ? error : { gaps: [], issues: [] };
  if (gaps.length + issues.length === 0) return <ErrorNote error={error} />;
  return (
    <Refusal title={gaps.length > 0 ? "This boundary can't be guaranteed here" : "The request is invalid"}>
      <ul className="space-y-3">
        {issues.map(({ path, message }) => (
          <li key={`${path} ${message}`}>
            <code className="font-medium">{visibleText(path)}</code> {visibleText(message)}
          </li>
        ))}
        {gaps.map(({ actor, capability, reason, fix }) => (
          <li key={`${actor} ${capability} ${reason}`}>
            <p>
              <span className="font-medium">{promises[capability]}</span> · {visibleText(actor)}:{" "}
              {visibleText(reason)}
            </p>
            <p className="mt-1">
              <span className="font-medium">Fix: </span>
              {visibleText(fix)}
            </p>
          </li>
        ))}
      </ul>
    </Refusal>
  );
}

type Plan = Awaited<ReturnType<typeof client.plan>>["plan"];

function Planned({ plan: { sandbox, required, accepted } }: { readonly plan: Plan }) {
  return (
    <div className="space-y-2">
      <p className="flex items-center gap-2 font-medium text-good">
        <Icon of={<CircleCheck />} />
        Can run, in the sandbox {visibleText(sandbox)}
      </p>
      {required.length === 0 ? (
        <p className="text-wait">It demands no boundary: nothing will be guaranteed.</p>
      ) : (
        <ul>
          {required.map((capability) => (
            <li key={capability} className="border-b border-line py-1">
              {promises[capability]}
            </li>
          ))}
        </ul>
      )}
      {accepted.map(({ actor, capability, reason }) => (
        <p key={`${actor} ${capability}`} className="text-wait">
          Except for {visibleText(actor)}: {visibleText(reason)}
        </p>
      ))}
    </div>
  );
}
