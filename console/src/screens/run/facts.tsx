import { Circle, CircleCheck, CircleDot } from "lucide-react";
import type { ReactElement } from "react";
import { Fact, Icon } from "../../parts/basic.js";
import { ConfinementMark } from "../../parts/status.js";
import { bytesText, dollarsText, momentText, numberText, visibleText } from "../../parts/words.js";
import type { Receipt, RunInfo } from "../../server/client.js";
import type { PlanEntry, RunSnapshot } from "../../server/run-log.js";
import { Part } from "./facts-part.js";
import { Waterfall } from "./waterfall.js";

export function Facts({
  info,
  snapshot,
  receipt,
  onChoose,
}: {
  readonly info: RunInfo;
  readonly snapshot: RunSnapshot;
  readonly receipt: Receipt | undefined;
  /** An entry of the activity was chosen, by its key. */
  readonly onChoose: (entry: string) => void;
}) {
  const { plan, events, result } = snapshot;
  const usage = result?.usage ?? snapshot.usage;
  return (
    <aside
      aria-label="Facts of the run"
      className="shrink-0 space-y-6 border-t border-line px-4 py-4 text-sm md:px-8 lg:w-88 xl:w-104 lg:overflow-y-auto lg:border-t-0 lg:border-l lg:px-6"
    >
      {plan.length > 0 && (
        <Part title="Plan">
          <Plan plan={plan} />
        </Part>
      )}
      <Waterfall snapshot={snapshot} onChoose={onChoose} />
      <Part title="Run">
        <dl>
          <Fact term="Began">{momentText(info.startedAt ?? info.createdAt)}</Fact>
          {result?.model !== undefined && <Fact term="Model">{visibleText(result.model)}</Fact>}
          <Fact term="Sandbox">{visibleText(info.sandbox)}</Fact>
          {info.sessionId !== undefined && <Fact term="Session">{visibleText(info.sessionId)}</Fact>}
          {info.projectId !== undefined && <Fact term="Project">{visibleText(info.projectId)}</Fact>}
          <Fact term="Events">{numberText(events)}</Fact>
        </dl>
      </Part>
      {usage !== undefined && (
        <Part title="Use">
          <dl>
            {usage.input !== undefined && <Fact term="Tokens in">{numberText(usage.input)}</Fact>}
            {usage.cached !== undefined && <Fact term="of these, cached">{numberText(usage.cached)}</Fact>}
            {usage.output !== undefined && <Fact term="Tokens out">{numberText(usage.output)}</Fact>}
            {usage.cost !== undefined && <Fact term="Cost">{dollarsText(usage.cost)}</Fact>}
          </dl>
        </Part>
      )}
      {receipt !== undefined && (
        <Part title="Receipt">
          <dl>
            <Fact term="Boundary">
              <ConfinementMark receipt={receipt} />
            </Fact>
            <Fact term="Guarantees">
              {receipt.guarantees.length} of {receipt.required.length}
            </Fact>
            <Fact term="Connections">
              {receipt.decisions.allowed} allowed, {receipt.decisions.refused} refused
            </Fact>
            {receipt.outputs !== undefined && (
              <Fact term="Files out">
                {receipt.outputs.files.length} (
                {bytesText(receipt.outputs.files.reduce((sum, { size }) => sum + size, 0))})
              </Fact>
            )}
            {receipt.visibleCredentials.length > 0 && (
              <Fact term="Readable secrets">{receipt.visibleCredentials.map(visibleText).join(", ")}</Fact>
            )}
          </dl>
        </Part>
      )}
    </aside>
  );
}

const planIcons: Readonly<
  Record<
    string,
    { readonly icon: ReactElement<{ className?: string }>; readonly tone: string; readonly word: string }
  >
> = {
  completed: { icon: <CircleCheck />, tone: "text-good", word: "done" },
  in_progress: { icon: <CircleDot />, tone: "text-accent", word: "in progress" },
  pending: { icon: <Circle />, tone: "text-muted", word: "to do" },
};
const pending = { icon: <Circle />, tone: "text-muted", word: "to do" };

function Plan({ plan }: { readonly plan: readonly PlanEntry[] }) {
  return (
    <ol className="space-y-1">
      {plan.map(({ content, status }, at) => {
        const { icon, tone, word } = planIcons[status] ?? pending;
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: a plan's entries have no other name
          <li key={at} className="flex gap-2">
            <span className={`mt-0.5 ${tone}`}>
              <Icon of={icon} />
            </span>
            <span className={status === "completed" ? "text-muted" : ""}>
              {visibleText(content)}
              <span className="sr-only"> ({word})</span>
            </span>
          </li>
        );
      })}
    </ol>
  );
}
