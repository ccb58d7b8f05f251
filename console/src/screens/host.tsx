import { useQuery } from "@tanstack/react-query";
import { CircleCheck, CircleX, TriangleAlert } from "lucide-react";
import { useState } from "react";
import { Button, Empty, ErrorNote, Icon, Spinner, useNow } from "../parts/basic.js";
import { promises } from "../parts/capabilities.js";
import { useSession } from "../parts/session-context.js";
import { agoText, momentText, numberText, visibleText } from "../parts/words.js";
import type { Actor } from "../server/client.js";
import { actors, type Host, host } from "../server/queries.js";

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
  // A host is the operator's.
  const isOperators = useSession().project === undefined;
  const about = useQuery({ ...host, enabled: isOperators });
  const sandboxes = data?.filter(({ kind }) => kind === "sandbox") ?? [];
  const others = data?.filter(({ kind }) => kind !== "sandbox") ?? [];
  return (
    <div className="min-h-0 flex-1 overflow-y-auto px-4 py-4 md:px-8 md:py-6">
      <header className="flex items-center gap-4">
        <h1>Host</h1>
        {about.data !== undefined && (
          <span className="numeric text-sm text-muted">
            Ambit {about.data.version}, Node.js {about.data.node.replace("v", "")}
          </span>
        )}
        <Button
          className="ml-auto"
          disabled={isFetching}
          onClick={() => {
            void refetch();
            if (isOperators) void about.refetch();
          }}
        >
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
        {about.data === undefined && about.error !== null && (
          <ErrorNote error={about.error} retry={() => void about.refetch()} />
        )}
        {about.data !== undefined && <Findings about={about.data} />}
        {sandboxes.map((actor) => (
          <Sandbox key={actor.name} actor={actor} about={about.data} />
        ))}
        {about.data !== undefined && <Agents agents={about.data.agents} />}
        {others.length > 0 && (
          <Others actors={others.filter(({ kind }) => about.data === undefined || kind !== "harness")} />
        )}
      </div>
    </div>
  );
}

/** What `ambit doctor` says besides the capabilities, each with its fix. */
function Findings({ about: { rules, notices } }: { readonly about: Host }) {
  if (rules.length === 0 && notices.length === 0) return null;
  return (
    <section className="text-sm">
      <h2 className="mb-1">To look at</h2>
      <ul>
        {rules.map(({ name, requires, metBy, gaps }) => (
          <li key={name} className="border-b border-line py-2">
            <p className={`flex gap-3 ${metBy.length > 0 ? "text-good" : "text-bad"}`}>
              <Icon of={metBy.length > 0 ? <CircleCheck /> : <CircleX />} />
              <span>
                <code>{visibleText(name)}</code> ({visibleText(requires)}){" "}
                {metBy.length > 0
                  ? `is met by ${visibleText(metBy.join(", "))}`
                  : "can't be met by any loaded sandbox: every run under it is refused"}
              </span>
            </p>
            {metBy.length === 0 &&
              gaps.map((gap) => (
                <p key={`${gap.actor} ${gap.capability}`} className="mt-1 pl-7 text-muted">
                  {visibleText(`${gap.actor} lacks ${gap.capability}: ${gap.reason}`)}
                  <span className="block text-ink">
                    <span className="font-medium">Fix: </span>
                    {visibleText(gap.fix)}
                  </span>
                </p>
              ))}
          </li>
        ))}
        {notices.map((notice) => (
          <li key={notice} className="flex gap-3 border-b border-line py-2">
            <span className="text-wait">
              <Icon of={<TriangleAlert />} />
            </span>
            <span className="min-w-0 break-words">{visibleText(notice)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The last `ambit verify` of a sandbox. */
function Verification({ sandbox, about }: { readonly sandbox: string; readonly about: Host }) {
  const now = useNow(10_000);
  const verified = about.verifications.find((one) => one.sandbox === sandbox)?.capabilities ?? [];
  const last = verified.toSorted((one, other) => (one.at > other.at ? -1 : 1))[0];
  if (last === undefined)
    return (
      <p className="text-muted">
        Not verified here yet: <code>ambit verify --sandbox {visibleText(sandbox)}</code> makes every attack.
      </p>
    );
  const proven = verified.filter(({ assurance }) => assurance === "proven");
  const faults = verified.filter(({ assurance }) => assurance !== "proven" && assurance !== "refused");
  const attacks = proven.reduce((sum, one) => sum + one.attacks, 0);
  return (
    <>
      <p className="text-muted">
        Verified <time title={momentText(last.at)}>{agoText(last.at, now)}</time> by Ambit{" "}
        {visibleText(last.version)}
        {last.version !== about.version && <span className="text-wait"> (this is {about.version})</span>}:{" "}
        {numberText(attacks)} attacks failed, {proven.length} of {verified.length} capabilities proven
      </p>
      {faults.map(({ capability, assurance, reason = "", fix }) => (
        <p key={capability} role="alert" className="mt-1 text-bad">
          {promises[capability]}: {visibleText(`${assurance}. ${reason}`)}
          {fix !== undefined && <span className="block text-ink">Fix: {visibleText(fix)}</span>}
        </p>
      ))}
    </>
  );
}

function Agents({ agents }: { readonly agents: Host["agents"] }) {
  return (
    <section className="text-sm">
      <h2 className="mb-1">Agents</h2>
      <ul>
        {agents.map(({ harness, title, comesAlong, installed }) => (
          <li
            key={harness}
            className="flex flex-wrap items-baseline gap-x-4 border-b border-line py-2 md:grid md:grid-cols-[10rem_1fr]"
          >
            <span className="font-medium">{visibleText(title)}</span>
            {comesAlong ? (
              <span className="text-muted">comes with its plugin</span>
            ) : installed === undefined ? (
              <span className="text-muted">
                not installed: <code>ambit agents install {harness}</code>
              </span>
            ) : (
              <span className="numeric">
                {installed.agent !== undefined && (
                  <>
                    <Version {...installed.agent} />, adapter{" "}
                  </>
                )}
                <Version {...installed} />
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Version({ version, tested }: { readonly version: string; readonly tested?: string | undefined }) {
  return (
    <>
      {visibleText(version)}
      {tested !== undefined && tested !== version && (
        <span className="text-wait"> (tested: {visibleText(tested)})</span>
      )}
    </>
  );
}

function Sandbox({ actor, about }: { readonly actor: Actor; readonly about: Host | undefined }) {
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
      {about !== undefined && <Verification sandbox={name} about={about} />}
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
        className="flex w-full gap-x-3 text-left"
        onClick={() => setIsOpen(!isOpen)}
      >
        <span className={`mt-0.5 ${finding.proven ? "text-good" : "text-bad"}`}>
          <Icon of={finding.proven ? <CircleCheck /> : <CircleX />} />
        </span>
        <span className="flex min-w-0 flex-wrap gap-x-3">
          <span className="font-medium">{promises[finding.capability]}</span>
          <code className="text-muted">{finding.capability}</code>
          <span className="sr-only">{finding.proven ? "proven" : "not proven"}</span>
        </span>
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
