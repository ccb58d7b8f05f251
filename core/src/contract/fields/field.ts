/** What one field of the request does here. */
export interface FieldMeaning {
  /**
   * `acts`: it changes the run · `informational`: it is accepted and changes nothing · `refused`: a value in it
   * refuses the request, for what it asks can't be done.
   */
  readonly what: "acts" | "informational" | "refused";
  /** A sentence: what it does; or why it changes nothing, or can't be done, and what to do instead. */
  readonly does: string;
  /** How earlier wires spelt it, besides snake_case. */
  readonly older?: string;
}

export type FieldMeanings = Readonly<Record<string, FieldMeaning>>;

export function acts(does: string, older?: string): FieldMeaning {
  return older === undefined ? { what: "acts", does } : { what: "acts", does, older };
}

export function informational(does: string): FieldMeaning {
  return { what: "informational", does };
}

export function refused(does: string): FieldMeaning {
  return { what: "refused", does };
}
