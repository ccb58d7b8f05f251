/** One value of a plot: a row's label, and which of its marks this is. */
export interface PlottedValue {
  readonly label: string;
  readonly series: string;
  readonly median: number;
  readonly p95: number;
}

export interface Plot {
  readonly title: string;
  /** What was measured, where and when: below the plot. */
  readonly caption: string;
  readonly values: readonly PlottedValue[];
}

const width = 860;
const labelWidth = 330;
const rowHeight = 26;
const top = 74;
const bottom = 66;
const right = 60;
const font = 13;

/** Legible on light and dark pages where a viewer ignores the media query; sharper where it doesn't. */
const style = `
text { font: ${font}px system-ui, sans-serif; fill: #768390; }
.title { font-size: 16px; font-weight: 600; }
.ambit { font-weight: 600; }
.grid { stroke: #76839055; }
.mark { stroke-width: 2; stroke: #768390; fill: #768390; }
.ambit-mark { stroke: #2f81f7; fill: #2f81f7; }
.burst { fill: none; }
@media (prefers-color-scheme: light) { text { fill: #1f2328; } .mark { stroke: #59636e; fill: #59636e; } .ambit-mark { stroke: #0969da; fill: #0969da; } .burst { fill: none; } }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3; } .mark { stroke: #9198a1; fill: #9198a1; } .ambit-mark { stroke: #4493f8; fill: #4493f8; } .burst { fill: none; } }
`;

/** A row for each label: a mark for each series' median, with a line to its 95th percentile. Pure. */
export function dotPlot({ title, caption, values }: Plot): string {
  const labels = [...new Set(values.map(({ label }) => label))];
  const series = [...new Set(values.map((value) => value.series))];
  const all = values.flatMap(({ median, p95 }) => [median, p95]);
  const [low, high] = [Math.floor(Math.log10(Math.min(...all))), Math.ceil(Math.log10(Math.max(...all)))];
  const span = Math.max(1, high - low);
  const x = (value: number) => labelWidth + ((Math.log10(value) - low) / span) * (width - labelWidth - right);
  const height = top + labels.length * rowHeight + bottom;
  const end = height - bottom;
  const ticks = Array.from({ length: span + 1 }, (_, at) => 10 ** (low + at));
  const said = values.map(
    ({ label, series: name, median, p95 }) => `${label}, ${name}: ${inMs(median)}, p95 ${inMs(p95)}`,
  );
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title values">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="values">${escaped(`${said.join("; ")}. ${caption}`)}</desc>`,
    `<style>${style}</style>`,
    `<text class="title" x="12" y="26">${escaped(title)}</text>`,
    ...series.map(
      (name, at) =>
        `${mark(name, "", 20 + at * 150, 50)}<text x="${32 + at * 150}" y="54">${escaped(name)}</text>`,
    ),
    `<text x="${32 + series.length * 150}" y="54">line: to the 95th percentile</text>`,
    ...ticks.flatMap((tick) => [
      `<line class="grid" x1="${at(x(tick))}" y1="${top - 6}" x2="${at(x(tick))}" y2="${end}"/>`,
      `<text x="${at(x(tick))}" y="${end + 18}" text-anchor="middle">${inMs(tick)}</text>`,
    ]),
    ...labels.flatMap((label, row) => {
      const isOurs = label.startsWith("Ambit");
      const y = top + (row + 0.5) * rowHeight;
      const ours = isOurs ? " ambit-mark" : "";
      return [
        `<text class="${isOurs ? "ambit" : ""}" x="${labelWidth - 12}" y="${y + 4}" text-anchor="end">${escaped(label)}</text>`,
        ...values
          .filter((value) => value.label === label)
          .flatMap(({ series: name, median, p95 }) => {
            const height = y + (series.indexOf(name) - (series.length - 1) / 2) * 7;
            return [
              `<line class="mark${ours}" x1="${at(x(median))}" y1="${height}" x2="${at(x(p95))}" y2="${height}"/>`,
              mark(name, ours, x(median), height),
            ];
          }),
      ];
    }),
    `<text x="12" y="${height - 16}">${escaped(caption)}</text>`,
    "</svg>",
  ];
  return `${parts.join("\n")}\n`;
}

const at = (value: number) => value.toFixed(1);

/** Each series has a shape of its own: colours alone can be hard to tell apart. */
function mark(series: string, ours: string, x: number, y: number): string {
  if (series === "burst") return `<circle class="mark burst${ours}" cx="${at(x)}" cy="${y}" r="4"/>`;
  if (series === "staggered")
    return `<rect class="mark${ours}" x="${at(x - 3)}" y="${y - 3}" width="6" height="6"/>`;
  return `<circle class="mark${ours}" cx="${at(x)}" cy="${y}" r="4"/>`;
}

function inMs(value: number): string {
  return value >= 1_000
    ? `${Number((value / 1_000).toPrecision(2))} s`
    : `${Number(value.toPrecision(2))} ms`;
}

const escaped = (text: string) =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
