import { gapLine, type Receipt } from "@ambit/core";

/** A receipt in a few labelled lines: what held, what was outside, what was seen at the boundary. */
export function receiptLines(receipt: Receipt): readonly (readonly [label: string, text: string])[] {
  const { required, guarantees, actors, accepted, credentials, visibleCredentials, decisions } = receipt;
  const boundary =
    required.length === 0
      ? `${receipt.sandbox} · ${receipt.confinement}: no boundary was asked for`
      : `${receipt.sandbox} · ${receipt.confinement} · ${receipt.enforcement}`;
  const held = required.map((capability) => {
    const by = guarantees.find((guarantee) => guarantee.capability === capability);
    return ["", `${capability} · ${by === undefined ? "accepted as a gap" : `${by.by}: ${by.how}`}`] as const;
  });
  const warnings = new Set(guarantees.flatMap(({ warning }) => warning ?? []));
  const outside = actors.filter(({ assurance }) => assurance === "outside");
  return [
    ["receipt", boundary],
    ...held,
    ...[...warnings].map((warning) => ["", `warning: ${warning}`] as const),
    ...outside.map(({ kind, name, site }) => ["", `outside: ${kind} ${name}, on the ${site}`] as const),
    ...accepted.map((gap) => ["", `accepted: ${gapLine(gap)}`] as const),
    ...credentials.map(
      ({ name, hosts, by }) => ["", `kept outside: ${name} · ${by}: ${hosts.join(", ")}`] as const,
    ),
    ...visibleCredentials.map((name) => ["", `visible inside: ${name}`] as const),
    ...(decisions.allowed + decisions.refused === 0
      ? []
      : [["", `connections: ${decisions.allowed} allowed, ${decisions.refused} refused`] as const]),
  ];
}
