import { z } from "zod";

/**
 * The owner of a sandbox, or of a secret made for one. Stored on the platform and readable by all its users, so it
 * contains no secrets.
 */
export const ownershipSchema = z.strictObject({
  deployment: z.string().min(1),
  /** Id of one process of a runner. */
  replica: z.string().min(1),
  /** The spec's id. */
  session: z.string().min(1),
  /** Seconds since the epoch, after which it is no longer needed. */
  expires: z.coerce.number().int(),
  /** Fence of an owner that another one may follow. Absent: it ends with its replica. */
  fence: z.coerce.number().int().optional(),
});
export type Ownership = Readonly<z.output<typeof ownershipSchema>>;

/** `ambit` marks Ambit's sandboxes; the other labels hold the fields of `Ownership`. */
const prefix = "ambit-";

export function labelsOf({ deployment, ...rest }: Ownership): Readonly<Record<string, string>> {
  const fields = Object.entries(rest).map(([field, value]) => [`${prefix}${field}`, String(value)]);
  return { ...labelsOfDeployment(deployment), ...Object.fromEntries(fields) };
}

/** The labels by which every sandbox of a deployment is found. */
export function labelsOfDeployment(deployment: string): Readonly<Record<string, string>> {
  return { ambit: "sandbox", [`${prefix}deployment`]: deployment };
}

/** Undefined unless all labels are Ambit's. */
export function ownershipOf(labels: Readonly<Record<string, string>>): Ownership | undefined {
  if (labels.ambit !== "sandbox") return undefined;
  // A platform may add labels of an image: only Ambit's count.
  const fields = Object.keys(ownershipSchema.shape)
    .filter((field) => labels[`${prefix}${field}`] !== undefined)
    .map((field) => [field, labels[`${prefix}${field}`]]);
  return ownershipSchema.safeParse(Object.fromEntries(fields)).data;
}
