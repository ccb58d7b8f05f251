import { type EnvironmentReceipt, gapLine, type Receipt } from "@ambit/core";

/** How a guarantee is shown, by its basis. */
const outcomeOf = { attempted: "proven", stated: "stated" } as const;

type Line = readonly [label: string, text: string];

/** Columns of the words that say what became of a capability or an actor. */
const outcomeWidth = 9;

/**
 * A receipt in a few labelled lines: what held, what was outside, what was seen at the boundary.
 * @param receipt
 * @param withEvidence also how each guarantee was proven, and what was observed of this sandbox.
 */
export function receiptLines(receipt: Receipt, withEvidence: boolean): readonly Line[] {
  const { required, guarantees, actors, accepted, credentials, visibleCredentials, decisions } = receipt;
  const boundary = required.length === 0 ? "without a boundary" : receipt.enforcement;
  const warnings = new Set(guarantees.flatMap(({ warning }) => warning ?? []));
  const outside = actors.filter(({ assurance }) => assurance === "outside");
  return [
    ["receipt", `${receipt.sandbox} · ${receipt.confinement} · ${boundary}`],
    ...required.flatMap((capability) => linesOfCapability(receipt, capability, withEvidence)),
    ...actors.flatMap(({ kind, name, subjects = [] }) =>
      kind === "sandbox" && subjects.length > 0 ? [entry("also in", `${name}: ${subjects.join(", ")}`)] : [],
    ),
    ...outside.map(({ kind, name, site }) => entry("outside", `${kind} ${name}, on the ${site}`)),
    ...accepted.map((gap) => entry("accepted", gapLine(gap))),
    ...credentials.map(({ name, hosts, by }) => entry("hidden", `${name} · ${by}: ${hosts.join(", ")}`)),
    ...(receipt.environment === undefined ? [] : [preparedLine(receipt.environment)]),
    ...(receipt.unaskedTools ?? []).map((name) => entry("unasked", `${name}, by the agent's own tools`)),
    ...visibleCredentials.map((name) => entry("visible", `${name}, inside the sandbox`)),
    ...(decisions.allowed + decisions.refused === 0
      ? []
      : [entry("", `connections: ${decisions.allowed} allowed, ${decisions.refused} refused`)]),
    // What is to be mended on this host stands in `ambit doctor`.
    ...(withEvidence ? [...warnings].map((warning) => entry("warning", warning)) : []),
    ...(withEvidence ? evidenceLines(receipt) : []),
  ];
}

function linesOfCapability(
  { guarantees }: Receipt,
  capability: Receipt["required"][number],
  withEvidence: boolean,
): Line[] {
  const proofs = guarantees.filter((guarantee) => guarantee.capability === capability);
  if (proofs.length === 0) return [entry("gap", `${capability}, accepted`)];
  if (withEvidence)
    return proofs.map(({ by, how, basis, provenAt }) =>
      entry(outcomeOf[basis], `${capability} · ${by}, ${provenAt}: ${how}`),
    );
  return (["attempted", "stated"] as const).flatMap((basis) => {
    const names = proofs.filter((proof) => proof.basis === basis).map(({ by }) => by);
    return names.length === 0 ? [] : [entry(outcomeOf[basis], `${capability} · ${names.join(", ")}`)];
  });
}

function preparedLine({ from, key, bytes, entries, builtAt, kept }: EnvironmentReceipt): Line {
  const how =
    from === "cache" ? `from the cache, built ${builtAt}` : `built now, ${kept ? "kept" : "not kept"}`;
  const size = `${entries} files and folders, ${Math.ceil(bytes / 1_048_576)} MiB`;
  return entry("prepared", `environment ${key.slice(0, 12)} · ${how} · ${size}`);
}

function evidenceLines({ evidence }: Receipt): Line[] {
  return Object.entries(evidence).map(([name, value]) => entry("seen", `${name}: ${value}`));
}

function entry(outcome: string, text: string): Line {
  return ["", `${outcome.padEnd(outcomeWidth)}${text}`];
}
