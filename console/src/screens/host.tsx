import { useQuery } from "@tanstack/react-query";
import { CircleCheck, CircleX, TriangleAlert } from "lucide-react";
import { useState } from "react";
import { Button, Empty, ErrorNote, Icon, Spinner, useNow } from "../parts/basic.js";
import { promises } from "../parts/capabilities.js";
import { agoText, momentText, visibleText } from "../parts/words.js";
import type { Actor } from "../server/client.js";
import { actors } from "../server/queries.js";

const kindWords = {
  sandbox: "Sandboxes",
  harness: "Agents",
  executor: "Executors of tools",
  toolSource: "Sources of tools",
  delivery: "Deliveries",
  gateway: "Gateways",
} as const;

/** What this host can guarantee, by whom, and when it was proven. */
export function HostScreen() {
  const { data, error, refetch, isFetching } = useQuery(actors);
  const sandboxes = data?.filter(({ kind }) => kind === "sandbox") ?? [];
  const others = data?.filter(({ kind }) => kind !== "sandbox") ?? [];
  return (
    <div className="min-h-0 flex-1 overflow-y-auto px-4 py-4 md:px-8 md:py-6">
      <header className="flex items-center gap-4">
        <h1>Host</h1>
        <Button className="ml-auto" disabled={isFetching} onClick={() => void refetch()}>
          {isFetching ? "Looking…" : "Look again"}
        </Button>
      </header>
      {data === undefined && error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
      {data === undefined && error === null && <Spinner label="Asking what this host can guarantee" />}
      {data !== undefined && sandboxes.length === 0 && (
        <Empty title="No sandbox is loaded">
          Without one, no run starts: name a sandbox plugin in the configuration.
        </Empty>
      )}
      <div className="mt-4 max-w-4xl space-y-8">
        {sandboxes.map((actor) => (
          <Sandbox key={actor.name} actor={actor} />
        ))}
        {others.length > 0 && <Others actors={others} />}
      </div>
    </div>
  );
}

function Sandbox({ actor }: { readonly actor: Actor }) {
  const now = useNow(10_000);
  const { name, plugin, claims, findings, probedAt } = actor;
  const proven = findings.filter((finding) => finding.proven).length;
  return (
    <section className="text-sm">
      <header className="mb-1 flex flex-wrap items-baseline gap-x-4">
        <h2>Sandbox {visibleText(name)}</h2>
        <span className={proven === 0 ? "text-bad" : proven < claims.length ? "text-wait" : "text-good"}>
          {proven} of {claims.length} capabilities proven here
        </span>
        <time className="ml-auto text-muted" dateTime={probedAt} title={momentText(probedAt)}>
          {visibleText(plugin)}, {agoText(probedAt, now)}
        </time>
      </header>
      <ul>
        {findings.map((finding) => (
          <FindingRow key={finding.capability} finding={finding} />
        ))}
      </ul>
    </section>
  );
}

function FindingRow({ finding }: { readonly finding: Actor["findings"][number] }) {
  const [isOpen, setIsOpen] = useState(!finding.proven);
  return (
    <li className="border-b border-line py-2">
      <button
        type="button"
        aria-expanded={isOpen}
        className="flex w-full flex-wrap items-center gap-x-3 text-left"
        onClick={() => setIsOpen(!isOpen)}
      >
        <span className={finding.proven ? "text-good" : "text-bad"}>
          <Icon of={finding.proven ? <CircleCheck /> : <CircleX />} />
        </span>
        <span className="font-medium">{promises[finding.capability]}</span>
        <code className="text-muted">{finding.capability}</code>
        <span className="sr-only">{finding.proven ? "proven" : "not proven"}</span>
      </button>
      {isOpen && (
        <div className="mt-1 space-y-1 pl-7 text-muted">
          {finding.proven ? (
            <>
              <p>{visibleText(finding.how)}.</p>
              {finding.warning !== undefined && (
                <p className="flex gap-2 text-wait">
                  <Icon of={<TriangleAlert />} />
                  {visibleText(finding.warning)}
                </p>
              )}
            </>
          ) : (
            <>
              <p>{visibleText(finding.reason)}</p>
              <p className="text-ink">
                <span className="font-medium">Fix: </span>
                {visibleText(finding.fix)}
              </p>
            </>
          )}
        </div>
      )}
    </li>
  );
}

function Others({ actors: others }: { readonly actors: readonly Actor[] }) {
  const kinds = Map.groupBy(others, ({ kind }) => kind);
  return (
    <div className="grid gap-8 text-sm md:grid-cols-2">
      {[...kinds].map(([kind, ofKind]) => (
        <section key={kind}>
          <h2 className="mb-1">{kindWords[kind]}</h2>
          <ul>
            {ofKind.map(({ name, plugin, findings }) => (
              <li key={name} className="flex gap-4 border-b border-line py-1">
                <span className="font-medium">{visibleText(name)}</span>
                <span className="min-w-0 truncate text-muted">{visibleText(plugin)}</span>
                {findings.length > 0 && (
                  <span className="numeric ml-auto whitespace-nowrap text-muted">
                    {findings.filter(({ proven }) => proven).length} of {findings.length} proven
                  </span>
                )}
              </li>
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}
