import { describe, expect, it } from "vitest";
import { dotPlot } from "../src/plot/dot-plot.js";
import { plotOf } from "../src/plot/points.js";

const value = (label: string, series: string, median: number, p95 = median * 2) => ({
  label,
  series,
  median,
  p95,
});
const plot = dotPlot({
  title: "A <first> command",
  caption: "2 cores & more",
  values: [
    value("bubblewrap", "sequential", 10),
    value("Ambit, local", "sequential", 20),
    value("Ambit, local", "burst", 90),
    value("docker run", "sequential", 1_000),
  ],
});

describe("a plot", () => {
  it("says every value in its text alternative, with escaped text", () => {
    expect(plot).toContain('role="img" aria-labelledby="title values"');
    expect(plot).toContain('<title id="title">A &lt;first&gt; command</title>');
    for (const said of [
      "bubblewrap, sequential: 10 ms, p95 20 ms",
      "burst: 90 ms, p95 180 ms",
      "1 s, p95 2 s",
      "cores &amp; more",
    ])
      expect(plot.match(/<desc id="values">([^<]*)<\/desc>/)?.[1]).toContain(said);
  });

  it("orders marks by their values, on a logarithmic axis", () => {
    const xs = [...plot.matchAll(/<line class="mark[^"]*" x1="([\d.]+)" y1="[\d.]+" x2="([\d.]+)"/g)];
    const [bubblewrap, local, burst, docker] = xs.map(([, from]) => Number(from));
    expect(Number(local) - Number(bubblewrap)).toBeCloseTo(
      (Math.log10(2) * (Number(docker) - Number(bubblewrap))) / 2,
      0,
    );
    expect(burst).toBeGreaterThan(Number(local));
    for (const [, from, to] of xs) expect(Number(to)).toBeGreaterThan(Number(from));
  });

  it("needs nothing else, and is legible on light and dark pages", () => {
    expect(plot.replace('xmlns="http://www.w3.org/2000/svg"', "")).not.toMatch(
      /https?:|href|<script|@import/,
    );
    expect(plot).toMatch(/prefers-color-scheme: light[\s\S]*prefers-color-scheme: dark/);
  });

  it("has the measurements that have a place in it, and is refused without any", () => {
    const goal = { id: "C1", title: "", goal: "" };
    const row = { what: "", unit: "ms", values: [3, 1, 2], point: { label: "a", series: "burst" } } as const;
    const others = { ...row, point: { label: "b", series: "burst" }, values: [] };
    const report = { machine: "m", outcomes: [{ goal, measurements: [row, others] }] };
    expect(plotOf(report).values).toEqual([{ label: "a", series: "burst", median: 2, p95: 3 }]);
    expect(() => plotOf({ machine: "m", outcomes: [] })).toThrow("none of these goals has a plot");
  });
});
