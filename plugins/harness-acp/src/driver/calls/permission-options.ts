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
 * The option that allows only this call, never an "always", which would cover calls that no user has seen. Undefined if
 * there is none.
 */
export function allowOption(options: unknown): string | undefined {
  return read(options).find((option) => option.kind === "allow_once" && !negative.test(option.words))?.id;
}

/**
 * The option that denies only this call, preferably one that doesn't end the turn. Without one, the answer is
 * `cancelled`, which every agent takes as a denial.
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
