import type { Metric } from "@ambit/metrics";

/** OpenTelemetry's name as its specification translates it to Prometheus. Pure. */
export function prometheusName(
  { name, unit }: Pick<Metric, "name" | "unit">,
  kind: "counter" | "gauge" | "histogram",
): string {
  const seconds = unit === "s" ? "_seconds" : "";
  return `${name.replaceAll(".", "_")}${seconds}${kind === "counter" ? "_total" : ""}`;
}
