import { Preference, usePreference } from "./preference.js";
import { clockText, durationText, momentText } from "./words.js";

/** How times within a run are shown: since it began, or by the clock. */
const times = new Preference("ambit.times", ["since", "clock"]);

export function useTimeText(beganAt: number): (at: number) => string {
  const shown = usePreference(times);
  return (at) => (shown === "clock" ? clockText(at) : `+${durationText(at - beganAt)}`);
}

/** A time of a run that began then. On a phone, one that reads like the one before it takes no room. */
export function Moment({
  at,
  beganAt,
  before,
}: {
  readonly at: number;
  readonly beganAt: number;
  readonly before: number | undefined;
}) {
  const textOf = useTimeText(beganAt);
  const iso = new Date(at).toISOString();
  const text = textOf(at);
  const isRepeated = before !== undefined && textOf(before) === text;
  return (
    <time
      dateTime={iso}
      title={momentText(iso)}
      className={`numeric text-xs leading-6 whitespace-nowrap text-muted ${isRepeated ? "max-md:hidden" : "max-md:block"}`}
    >
      {text}
    </time>
  );
}

const words = { since: "Since its start", clock: "By the clock" } as const;

export function TimesSwitch() {
  const shown = usePreference(times);
  return (
    <fieldset className="flex gap-3 text-xs">
      <legend className="sr-only">Times</legend>
      {times.values.map((value) => (
        <button
          key={value}
          type="button"
          aria-pressed={value === shown}
          className="text-muted hover:text-ink aria-pressed:font-medium aria-pressed:text-ink aria-pressed:underline aria-pressed:underline-offset-4"
          onClick={() => times.set(value)}
        >
          {words[value]}
        </button>
      ))}
    </fieldset>
  );
}
