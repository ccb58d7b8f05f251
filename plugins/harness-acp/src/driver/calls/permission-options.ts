import { isRecord, textAt } from "../json-reading.js";

export type PermissionOutcome =
  | { readonly outcome: "selected"; readonly optionId: string }
  | { readonly outcome: "cancelled" };

export const cancelled: PermissionOutcome = { outcome: "cancelled" };

interface Option {
  readonly id: string;
  readonly kind: string;
  /** Name and id in lower case, for agents that give every option the same kind. */
  readonly words: string;
}

const negative = /\b(no|not|don'?t|deny|denied|reject\w*|block|cancel\w*|abort|refuse|stop|decline)\b/;
const endsTurn = /\b(cancel|abort)\b/;

/**
 * The option that says yes to this one call: never an "always", which would bind calls that nobody has seen.
 * Undefined when there is none.
 */
export function allowOption(options: unknown): string | undefined {
  return read(options).find((option) => option.kind === "allow_once" && !negative.test(option.words))?.id;
}

/**
 * How to say no to this one call. An option that doesn't end the turn goes first; where none says no,
 * `cancelled` does (every agent takes it for one).
 */
export function denyOutcome(options: unknown): PermissionOutcome {
  const all = read(options);
  const rejecting = all.filter((option) => option.kind === "reject_once");
  const chosen =
    rejecting.find((option) => !endsTurn.test(option.words)) ??
    rejecting[0] ??
    all.find((option) => option.kind === "allow_once" && negative.test(option.words));
  return chosen === undefined ? cancelled : { outcome: "selected", optionId: chosen.id };
}

function read(options: unknown): readonly Option[] {
  if (!Array.isArray(options)) return [];
  return options.flatMap((option: unknown) => {
    if (!isRecord(option)) return [];
    const id = textAt(option, "optionId");
    if (id === undefined) return [];
    const words = `${textAt(option, "name") ?? ""} ${id.replaceAll(/[_-]/g, " ")}`.toLowerCase();
    return [{ id, kind: textAt(option, "kind") ?? "", words }];
  });
}
