const units = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

/** Milliseconds as a person says them: `0.42 s`, `12 s`, `3 min`, `5 h`, `2 d`. Pure. */
export function duration(ms: number): string {
  if (ms < 10_000) return `${(Math.max(ms, 0) / 1_000).toFixed(2)} s`;
  const [unit, size] = units.find(([, one]) => ms >= one) ?? ["s", 1_000];
  return `${Math.floor(ms / size)} ${unit}`;
}

/** How long ago it was: `now`, `12 s ago`, `3 min ago`. Pure. */
export function age(ms: number): string {
  return ms < 1_000 ? "now" : `${ms < 10_000 ? `${Math.floor(ms / 1_000)} s` : duration(ms)} ago`;
}
