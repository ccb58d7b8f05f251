import { type ActorDescription, type Capability, capabilities, type Finding } from "@ambit/core";
import { type Gate, gateGaps, requireText } from "../../gate.js";
import { printable } from "../../logging/printable.js";
import { colors, headline, marks, padded, sectionsOf, widest, wrapped } from "./layout.js";

/** What `ambit doctor` found. */
export interface Diagnosis {
  readonly actors: readonly ActorDescription[];
  readonly gates: readonly Gate[];
  /** What else the deployer should look at, a sentence each. */
  readonly notices: readonly string[];
  /** What else works, a sentence each. Default: nothing. */
  readonly holds?: readonly string[];
}

export interface ReportOptions {
  /** Columns of the terminal. */
  readonly columns: number;
  /** How each capability was proven, and when. */
  readonly verbose: boolean;
}

/** Whether nothing is guaranteed, or something that is required isn't. Pure. */
export function isLacking({ actors, gates }: Pick<Diagnosis, "actors" | "gates">): boolean {
  const isProven = sandboxesOf(actors).some(({ findings }) => findings.some(({ proven }) => proven));
  return !isProven || gates.some(({ metBy }) => metBy.length === 0);
}

/** The verdict, then a line for each capability, then why some aren't proven, each reason once with its fix. Pure. */
export function doctorReport(diagnosis: Diagnosis, options: ReportOptions): string {
  const { actors, gates, notices, holds = [] } = diagnosis;
  const sandboxes = sandboxesOf(actors);
  const others = actors.filter(({ kind, claims }) => kind !== "sandbox" && claims.length > 0);
  const warnings = [...warningsOf(actors), ...notices];
  return sectionsOf([
    [
      ...gates.filter(({ metBy }) => metBy.length === 0).map((gate) => gateLine(gate, options)),
      verdict(sandboxes, options),
      ...gates.filter(({ metBy }) => metBy.length > 0).map((gate) => gateLine(gate, options)),
    ],
    capabilities.map((capability) => capabilityLine(capability, sandboxes, options)),
    others.map((actor) => actorLine(actor, widest(others.map(titleOf)), options)),
    holds.map((one) => wrapped(`  ${colors.green(marks.holds)} `, printable(one), options.columns)),
    reasonLines(actors, options),
    warnings.map((warning) => wrapped(`${colors.yellow(marks.warns)} `, printable(warning), options.columns)),
    options.verbose ? [] : [colors.dim("`ambit doctor --verbose` shows how each was proven.")],
  ]);
}

function sandboxesOf(actors: readonly ActorDescription[]): readonly ActorDescription[] {
  return actors.filter(({ kind }) => kind === "sandbox");
}

function verdict(sandboxes: readonly ActorDescription[], { columns }: ReportOptions): string {
  const proven = capabilities.filter((capability) => provenBy(capability, sandboxes).length > 0).length;
  const say = (holds: boolean, text: string) => headline(holds, printable(text), columns);
  const names = sandboxes.map(({ name }) => name).join(", ");
  if (sandboxes.length === 0)
    return say(false, "No sandbox is loaded: nothing can run. Add one to `plugins`.");
  if (proven === 0)
    return say(
      false,
      "This host guarantees nothing: runs with a boundary are refused, runs without one are unconfined.",
    );
  if (proven === capabilities.length)
    return say(
      true,
      `This host guarantees every boundary: all ${proven} capabilities are proven (${names}).`,
    );
  return say(
    true,
    `This host guarantees ${proven} of ${capabilities.length} capabilities: a run that requires another is refused (${names}).`,
  );
}

function gateLine(gate: Gate, { columns }: ReportOptions): string {
  const { name, required, metBy } = gate;
  const what = `${name} (${requireText(required)})`;
  if (metBy.length > 0)
    return wrapped(`${colors.green(marks.holds)} `, `${what} is met by ${metBy.join(", ")}.`, columns);
  const lines = gateGaps(gate).map((line) => wrapped("    ", printable(line), columns));
  const failed = `${what} can't be met by any loaded sandbox: every run under it is refused.`;
  return [wrapped(`${colors.red(marks.lacks)} `, failed, columns), ...lines].join("\n");
}

/** Sandboxes that guarantee it here, with what they saw. */
function provenBy(
  capability: Capability,
  sandboxes: readonly ActorDescription[],
): readonly { readonly name: string; readonly probedAt: string; readonly finding: Finding }[] {
  return sandboxes.flatMap(({ name, findings, probedAt }) => {
    const finding = findings.find((one) => one.capability === capability && one.proven);
    return finding === undefined ? [] : [{ name, finding, probedAt }];
  });
}

const capabilityWidth = widest(capabilities);

function capabilityLine(
  capability: Capability,
  sandboxes: readonly ActorDescription[],
  { columns, verbose }: ReportOptions,
): string {
  const proofs = provenBy(capability, sandboxes);
  const mark = proofs.length > 0 ? colors.green(marks.holds) : colors.red(marks.lacks);
  const outcome = proofs.length > 0 ? proofs.map(({ name }) => name).join(", ") : "refused";
  const line = `  ${mark} ${padded(capability, capabilityWidth)}  ${outcome}`;
  if (!verbose) return line;
  const how = proofs.map(({ name, finding, probedAt }) =>
    wrapped("      ", `${name}, ${probedAt}: ${finding.proven ? printable(finding.how) : ""}`, columns),
  );
  return [line, ...how].join("\n");
}

/** `toolSource` is "tool source". */
function titleOf({ kind, name }: ActorDescription): string {
  return `${kind.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)} ${name}`;
}

function actorLine(actor: ActorDescription, width: number, { columns, verbose }: ReportOptions): string {
  const proven = actor.findings.filter((finding) => finding.proven);
  const missing = actor.claims.filter((claim) => !proven.some(({ capability }) => capability === claim));
  const mark = missing.length === 0 ? colors.green(marks.holds) : colors.red(marks.lacks);
  const names = [
    proven.map(({ capability }) => capability).join(", "),
    missing.length === 0 ? "" : `not ${missing.join(", ")}`,
  ].filter((text) => text !== "");
  const line = wrapped(`  ${mark} ${padded(titleOf(actor), width)}  `, names.join("; "), columns);
  if (!verbose) return line;
  const how = proven.map(({ capability, how: seen }) =>
    wrapped("      ", `${capability}, ${actor.probedAt}: ${printable(seen)}`, columns),
  );
  return [line, ...how].join("\n");
}

/** Each reason once: one that every capability shares would fill the screen. */
function reasonLines(actors: readonly ActorDescription[], { columns }: ReportOptions): readonly string[] {
  return actors.flatMap(({ name, claims, findings }) => {
    const byReason = new Map<string, { readonly fix: string; readonly names: Capability[] }>();
    for (const capability of claims) {
      const finding = findings.find((one) => one.capability === capability);
      if (finding?.proven === true) continue;
      const { reason, fix } = finding ?? { reason: "its probe reported nothing about it", fix: "" };
      const same = byReason.get(`${reason}\n${fix}`) ?? { fix, names: [] };
      same.names.push(capability);
      byReason.set(`${reason}\n${fix}`, same);
    }
    return [...byReason].map(([key, { fix, names }]) => {
      const [reason = ""] = key.split("\n");
      const what =
        names.length === claims.length && names.length > 1
          ? "proves nothing here"
          : `doesn't prove ${names.join(", ")}`;
      return [
        wrapped(`${colors.red(marks.lacks)} `, printable(`${name} ${what}: ${reason}`), columns),
        ...(fix === "" ? [] : [wrapped(`    ${colors.bold("fix")}  `, printable(fix), columns)]),
      ].join("\n");
    });
  });
}

/** Each warning once, with what it concerns. */
function warningsOf(actors: readonly ActorDescription[]): readonly string[] {
  const concerned = new Map<string, string[]>();
  for (const { name, findings } of actors)
    for (const finding of findings) {
      if (!finding.proven || finding.warning === undefined) continue;
      const warning = `${name}: ${finding.warning}`;
      concerned.set(warning, [...(concerned.get(warning) ?? []), finding.capability]);
    }
  return [...concerned].map(([warning, names]) => `${warning} (${names.join(", ")})`);
}
