import { CircleCheck, ShieldCheck, ShieldX, TriangleAlert } from "lucide-react";
import { type ReactNode, useState } from "react";
import { Button, Empty, Icon } from "../../parts/basic.js";
import { promises } from "../../parts/capabilities.js";
import { CopyButton } from "../../parts/code.js";
import { confinementOf } from "../../parts/outcome.js";
import { agoText, momentText, visibleText } from "../../parts/words.js";
import type { Receipt } from "../../server/client.js";
import type { Entry, RunSnapshot } from "../../server/run-log.js";

type Decision = Extract<Entry, { kind: "decision" }>["decision"];

/** What the request demanded, what each actor guaranteed, and every connection with its rule. */
export function Boundary({
  snapshot,
  receipt,
}: {
  readonly snapshot: RunSnapshot;
  readonly receipt: Receipt | undefined;
}) {
  const decisions = snapshot.entries.flatMap((entry) => (entry.kind === "decision" ? [entry.decision] : []));
  return (
    <div className="min-w-0 flex-1 space-y-8 px-4 max-lg:flex-none lg:min-h-0 lg:overflow-y-auto py-4 text-sm md:px-8">
      {receipt === undefined ? (
        <Empty title={snapshot.isLive ? "The receipt comes with the result" : "This run has no receipt"}>
          {snapshot.isLive
            ? "Connections are shown as they are decided on."
            : "It ended before its sandbox was opened: nothing of it ran."}
        </Empty>
      ) : (
        <Guarantees receipt={receipt} />
      )}
      <Connections decisions={decisions} />
      {receipt !== undefined && (
        <>
          <Gaps receipt={receipt} />
          <Actors receipt={receipt} />
          <Secrets receipt={receipt} />
          <Evidence receipt={receipt} />
        </>
      )}
    </div>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className="max-w-4xl">
      <h2 className="mb-2">{title}</h2>
      {children}
    </section>
  );
}

function Guarantees({ receipt }: { readonly receipt: Receipt }) {
  const { required, guarantees } = receipt;
  const { kind } = confinementOf(receipt);
  if (kind === "unconfined" || kind === "open")
    return (
      <Part title="Guarantees">
        <p className={kind === "unconfined" ? "text-bad" : "text-wait"}>
          None. {kind === "open" ? "The request demanded no boundary." : "Its sandbox confines nothing."}
        </p>
      </Part>
    );
  return (
    <Part title={`Guarantees: ${guarantees.length} of ${required.length} demanded`}>
      <ul>
        {required.map((capability) => {
          const guarantee = guarantees.find((candidate) => candidate.capability === capability);
          return (
            <li key={capability} className="flex gap-3 border-b border-line py-2">
              <span className={`mt-0.5 ${guarantee === undefined ? "text-bad" : "text-good"}`}>
                <Icon of={guarantee === undefined ? <ShieldX /> : <CircleCheck />} />
              </span>
              <div className="min-w-0 flex-1">
                <p className="flex flex-wrap gap-x-3">
                  <span className="font-medium">{promises[capability]}</span>
                  <code className="text-muted">{capability}</code>
                </p>
                {guarantee === undefined ? (
                  <p className="text-bad">Not guaranteed</p>
                ) : (
                  <Proof guarantee={guarantee} />
                )}
              </div>
            </li>
          );
        })}
      </ul>
    </Part>
  );
}

const bases = { attempted: "tried on this host", stated: "its author's word" } as const;

function Proof({ guarantee }: { readonly guarantee: Receipt["guarantees"][number] }) {
  const [isOpen, setIsOpen] = useState(false);
  const { by, basis, how, provenAt, warning } = guarantee;
  return (
    <div className="text-muted">
      <button
        type="button"
        aria-expanded={isOpen}
        className="text-left hover:text-ink"
        onClick={() => setIsOpen(!isOpen)}
      >
        By {visibleText(by)}, {bases[basis]},{" "}
        <time dateTime={provenAt} title={momentText(provenAt)}>
          {agoText(provenAt, Date.now())}
        </time>
        <span className="ml-2 text-accent">{isOpen ? "less" : "how"}</span>
      </button>
      {isOpen && <p className="mt-1 text-ink">{visibleText(how)}.</p>}
      {warning !== undefined && (
        <p className="mt-1 flex gap-2 text-wait">
          <span className="mt-0.5">
            <Icon of={<TriangleAlert />} />
          </span>
          {visibleText(warning)}
        </p>
      )}
    </div>
  );
}

function Connections({ decisions }: { readonly decisions: readonly Decision[] }) {
  if (decisions.length === 0)
    return (
      <Part title="Connections">
        <p className="text-muted">None was decided on.</p>
      </Part>
    );
  return (
    <Part title="Connections">
      <ul>
        {decisions.map((decision, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a list that only grows
          <Connection key={at} decision={decision} />
        ))}
      </ul>
    </Part>
  );
}

function Connection({ decision }: { readonly decision: Decision }) {
  const [isOpen, setIsOpen] = useState(false);
  const { target, allowed, reason, failure, count } = decision;
  const isGood = allowed && failure === undefined;
  return (
    <li className="border-b border-line py-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <span className={`inline-flex items-center gap-2 ${isGood ? "text-good" : "text-bad"}`}>
          <Icon of={isGood ? <ShieldCheck /> : <ShieldX />} />
          {allowed ? (failure === undefined ? "Allowed" : "Failed") : "Refused"}
        </span>
        <code className="font-medium">{visibleText(target)}</code>
        {count > 1 && <span className="text-muted">{count} times</span>}
        <span className="min-w-0 text-muted">{visibleText(failure ?? reason)}</span>
        {!allowed && (
          <Button className="ml-auto" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            {isOpen ? "Hide the rule" : "Rule that would allow it"}
          </Button>
        )}
      </div>
      {isOpen && <SuggestedRule target={target} />}
    </li>
  );
}

/** A change of the request for its author to make: nothing is applied from here. */
function SuggestedRule({ target }: { readonly target: string }) {
  const rule = target.replace(/:443$/, "");
  const lines = [
    ['  "sandboxPermission": {', "same"],
    ['-   "network": "off"', "removed"],
    [`+   "network": { "allowlist": [${JSON.stringify(rule)}] }`, "added"],
    ["  }", "same"],
  ] as const;
  const tones = {
    same: "",
    removed: "bg-bad-wash text-bad",
    added: "bg-good-wash text-good",
  } as const;
  return (
    <div className="mt-2 border-l-2 border-line pl-4">
      <p className="text-muted">
        Where the request has an allowlist already, add the entry to it. Allowing it lets the run send what it
        can read there.
      </p>
      <pre className="mt-2 overflow-x-auto">
        {lines.map(([line, kind]) => (
          <span key={line} className={`block ${tones[kind]}`}>
            {line}
          </span>
        ))}
      </pre>
      <span className="flex items-center gap-1 text-muted">
        <CopyButton text={JSON.stringify(rule)} label="Copy the entry" /> Copy the entry
      </span>
    </div>
  );
}

function Gaps({ receipt: { accepted } }: { readonly receipt: Receipt }) {
  if (accepted.length === 0) return null;
  return (
    <Part title="Gaps that the request accepted">
      <ul>
        {accepted.map(({ actor, capability, reason, fix }) => (
          <li key={`${actor} ${capability}`} className="border-b border-line py-2">
            <p>
              <span className="font-medium text-wait">{promises[capability]}</span>, except for{" "}
              <span className="font-medium">{visibleText(actor)}</span>: {visibleText(reason)}
            </p>
            <p className="text-muted">Fix: {visibleText(fix)}</p>
          </li>
        ))}
      </ul>
    </Part>
  );
}

const assurances = {
  guaranteed: "guarantees it",
  inherited: "inherits it from the sandbox",
  mediated: "acts for the run by Ambit only",
  outside: "is outside",
} as const;

const sites = { sandbox: "in the sandbox", runner: "beside the server", caller: "with the caller" } as const;

function Actors({ receipt: { actors } }: { readonly receipt: Receipt }) {
  return (
    <Part title="Who acted">
      <ul>
        {actors.map(({ kind, name, site, assurance, touches, subjects = [] }) => (
          <li
            key={`${kind} ${name}`}
            className="grid gap-x-4 border-b border-line py-2 md:grid-cols-[10rem_8rem_14rem_minmax(0,1fr)]"
          >
            <span className="font-medium break-words">
              {visibleText(name)} <span className="font-normal text-muted">{kind.toLowerCase()}</span>
            </span>
            <span>{sites[site]}</span>
            <span className={assurance === "outside" ? "text-wait" : ""}>{assurances[assurance]}</span>
            <span className="break-words text-muted">
              {subjects.length > 0 ? subjects.map(visibleText).join(", ") : touches.join(", ")}
            </span>
          </li>
        ))}
      </ul>
    </Part>
  );
}

function Secrets({ receipt: { credentials, visibleCredentials } }: { readonly receipt: Receipt }) {
  if (credentials.length + visibleCredentials.length === 0) return null;
  return (
    <Part title="Credentials">
      <ul>
        {visibleCredentials.map((name) => (
          <li key={name} className="border-b border-line py-2">
            <code>{visibleText(name)}</code> <span className="text-wait">could be read inside</span>
          </li>
        ))}
        {credentials.map(({ name, hosts }) => (
          <li key={name} className="border-b border-line py-2">
            <code>{visibleText(name)}</code> stayed outside; it was sent to{" "}
            {hosts.map(visibleText).join(", ")} only
          </li>
        ))}
      </ul>
    </Part>
  );
}

function Evidence({ receipt: { evidence } }: { readonly receipt: Receipt }) {
  const entries = Object.entries(evidence);
  if (entries.length === 0) return null;
  return (
    <details className="max-w-4xl">
      <summary className="font-semibold">What was seen of this sandbox</summary>
      <dl className="mt-2 grid gap-x-8 md:grid-cols-2">
        {entries.map(([name, value]) => (
          <div key={name} className="flex justify-between gap-4 border-b border-line py-1">
            <dt className="text-muted">{visibleText(name)}</dt>
            <dd className="numeric min-w-0 truncate" title={String(value)}>
              {visibleText(String(value))}
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
