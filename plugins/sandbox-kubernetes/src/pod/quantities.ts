/** Multiples of one, by the suffix of a Kubernetes quantity. */
const suffixes: Readonly<Record<string, number>> = {
  "": 1,
  m: 1e-3,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** What a quantity says, in ones; undefined for another text. Pure. */
export function quantityOf(text: string): number | undefined {
  const [, digits, suffix = ""] = /^([0-9.]+)([a-zA-Z]*)$/.exec(text) ?? [];
  const factor = suffixes[suffix];
  return digits === undefined || factor === undefined ? undefined : Number(digits) * factor;
}

export const mebibytes = (count: number) => `${count}Mi`;

/** The API knows no smaller part of a processor than a thousandth. */
export const processors = (count: number) => `${Math.max(1, Math.round(count * 1_000))}m`;
