import {
  Ban,
  Circle,
  CircleCheck,
  CircleX,
  Clock,
  Hand,
  ShieldAlert,
  ShieldCheck,
  ShieldOff,
} from "lucide-react";
import { toneClass } from "./basic.js";
import { type Confinement, confinementOf, type Outcome } from "./outcome.js";

const icons = {
  queued: Clock,
  running: Circle,
  waiting: Hand,
  completed: CircleCheck,
  failed: CircleX,
  cancelled: Ban,
} as const;

export function OutcomeMark({
  outcome,
  hasWord = true,
}: {
  readonly outcome: Outcome;
  readonly hasWord?: boolean;
}) {
  const Mark = icons[outcome.kind];
  return (
    <span
      className={`inline-flex items-center gap-2 font-medium whitespace-nowrap ${toneClass(outcome.tone)}`}
    >
      {outcome.kind === "running" ? (
        <span className="relative grid size-4 shrink-0 place-items-center" aria-hidden>
          <span className="absolute size-3 animate-ping rounded-full bg-accent opacity-30" />
          <span className="size-2 rounded-full bg-accent" />
        </span>
      ) : (
        <Mark className="size-4 shrink-0" aria-hidden />
      )}
      <span className={hasWord ? "" : "sr-only"}>{outcome.word}</span>
    </span>
  );
}

const shields = {
  unknown: { Mark: ShieldOff, tone: "text-muted" },
  unconfined: { Mark: ShieldOff, tone: "text-bad" },
  open: { Mark: ShieldOff, tone: "text-wait" },
  gaps: { Mark: ShieldAlert, tone: "text-wait" },
  confined: { Mark: ShieldCheck, tone: "text-good" },
} as const;

export function ConfinementMark({ receipt }: { readonly receipt: Confinement | undefined }) {
  const { kind, words } = confinementOf(receipt);
  if (kind === "unknown") return null;
  const { Mark, tone } = shields[kind];
  return (
    <span className={`inline-flex items-center gap-1 whitespace-nowrap ${tone}`}>
      <Mark className="size-4 shrink-0" aria-hidden />
      {words}
    </span>
  );
}

/** Stands on every screen of a run that nothing confined. */
export function UnconfinedBanner({
  receipt,
  name,
}: {
  readonly receipt: Confinement | undefined;
  /** Which of several runs it is. Default: there is one. */
  readonly name?: string | undefined;
}) {
  const { kind } = confinementOf(receipt);
  if (kind !== "unconfined" && kind !== "open") return null;
  const isBad = kind === "unconfined";
  return (
    <div
      role="note"
      className={`flex items-start gap-3 border-y px-4 py-2 text-sm md:px-8 ${isBad ? "border-bad bg-bad-wash text-bad" : "border-wait bg-wait-wash text-wait"}`}
    >
      <ShieldOff className="mt-0.5 size-4 shrink-0" aria-hidden />
      <p>
        {name !== undefined && <code className="mr-2 font-medium">{name}</code>}
        {isBad
          ? "Unconfined: this run could touch what the server's user can touch. Nothing of it is guaranteed."
          : "No boundary: its request demanded none, so nothing of this run is guaranteed. The network was open to it."}
      </p>
    </div>
  );
}
