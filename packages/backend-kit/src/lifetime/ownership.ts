import { z } from "zod";

/** Whose a sandbox is, or a secret made for one. The platform keeps it, readable to all its users: no secrets. */
export const ownershipSchema = z.strictObject({
  deployment: z.string().min(1),
  /** Of one process of a runner. */
  replica: z.string().min(1),
  /** The spec's id. */
  session: z.string().min(1),
  /** Seconds since the epoch, after which it is no longer needed. */
  expires: z.coerce.number().int(),
  /** Of an owner that another may follow. Absent: it ends with its replica. */
  fence: z.coerce.number().int().optional(),
});
export type Ownership = Readonly<z.output<typeof ownershipSchema>>;

/** `ambit` marks what is ours; the other labels carry the fields of `Ownership`. */
const prefix = "ambit-";

export function labelsOf({ deployment, ...rest }: Ownership): Readonly<Record<string, string>> {
  const fields = Object.entries(rest).map(([field, value]) => [`${prefix}${field}`, String(value)]);
  return { ...labelsOfDeployment(deployment), ...Object.fromEntries(fields) };
}

/** What every sandbox of a deployment is found by. */
export function labelsOfDeployment(deployment: string): Readonly<Record<string, string>> {
  return { ambit: "sandbox", [`${prefix}deployment`]: deployment };
}

/** Undefined for what isn't ours, whole. */
export function ownershipOf(labels: Readonly<Record<string, string>>): Ownership | undefined {
  if (labels.ambit !== "sandbox") return undefined;
  // A platform may add labels of an image: only ours count.
  const fields = Object.keys(ownershipSchema.shape)
    .filter((field) => labels[`${prefix}${field}`] !== undefined)
    .map((field) => [field, labels[`${prefix}${field}`]]);
  return ownershipSchema.safeParse(Object.fromEntries(fields)).data;
}
