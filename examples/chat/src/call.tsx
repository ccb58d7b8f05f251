import { type DynamicToolUIPart, getToolName, type ToolUIPart } from "ai";
import type { Chat } from "./message.js";
import { SeatMap } from "./seat-map.js";

type CallPart = ToolUIPart | DynamicToolUIPart;

const states: Readonly<Record<CallPart["state"], string>> = {
  "input-streaming": "begins",
  "input-available": "runs",
  "approval-requested": "waits for you",
  "approval-responded": "answered",
  "output-available": "done",
  "output-error": "failed",
  "output-denied": "denied",
};

const isFlat = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" &&
  value !== null &&
  !Array.isArray(value) &&
  Object.values(value).every((entry) => typeof entry !== "object");

/** Arguments and outputs as a person reads them: names and values, and JSON for what is nested. */
function shown(value: unknown): string {
  if (typeof value === "string") return value.trimEnd();
  if (isFlat(value))
    return Object.entries(value)
      .map(([name, entry]) => `${name}: ${entry}`)
      .join("\n");
  if (Array.isArray(value) && value.every(isFlat))
    return value.map((row) => Object.values(row).join(" · ")).join("\n");
  return JSON.stringify(value, null, 2);
}

export function Call({ part, chat, isLive }: { part: CallPart; chat: Chat; isLive: boolean }) {
  const { toolCallId, state } = part;
  const tool = getToolName(part);
  const waitsForSeat = tool === "choose_seat" && state === "input-available";
  const label = waitsForSeat ? "waits for you" : states[state];
  return (
    <section className={`call ${state}`} aria-label={`${tool}: ${label}`}>
      <header>
        <code>{tool}</code>
        <span className="state">{label}</span>
      </header>
      {part.input !== undefined && Object.keys(Object(part.input)).length > 0 && (
        <pre>{shown(part.input)}</pre>
      )}
      {waitsForSeat && (
        <SeatMap onChoose={(seat) => void chat.addToolOutput({ tool, toolCallId, output: { seat } })} />
      )}
      {state === "approval-requested" && (
        <div className="answers">
          {[true, false].map((approved) => (
            <button
              key={String(approved)}
              type="button"
              className={approved ? "" : "quiet"}
              disabled={isLive}
              onClick={() => void chat.addToolApprovalResponse({ id: part.approval.id, approved })}
            >
              {approved ? "Allow" : "Deny"}
            </button>
          ))}
        </div>
      )}
      {state === "output-available" && shown(part.output) !== "" && (
        <pre className="output">{shown(part.output)}</pre>
      )}
      {state === "output-error" && <p className="reason">{part.errorText}</p>}
      {state === "output-denied" && <p className="reason">{part.approval.reason ?? "You denied it."}</p>}
    </section>
  );
}
