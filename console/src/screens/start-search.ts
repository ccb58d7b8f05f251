/** The run that is begun again, as the address has it. */
export interface StartSearch {
  readonly again?: string;
  readonly project?: string;
}

export function readStartSearch(search: Readonly<Record<string, unknown>>): StartSearch {
  const texts = (["again", "project"] as const).flatMap((name) => {
    const value = search[name];
    return typeof value === "string" || typeof value === "number" ? [[name, String(value)]] : [];
  });
  return Object.fromEntries(texts);
}
