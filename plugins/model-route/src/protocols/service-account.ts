import { literalAddress } from "@ambit/egress";
import { z } from "zod";

const accountSchema = z.object({
  type: z.literal("service_account"),
  client_email: z.string().min(1).max(320),
  private_key: z.string().regex(/^-----BEGIN PRIVATE KEY-{5}/, "must be a PKCS #8 key in PEM"),
  private_key_id: z.string().max(200).optional(),
  token_uri: z.url({ protocol: /^https?$/ }).default("https://oauth2.googleapis.com/token"),
});
export type ServiceAccount = z.output<typeof accountSchema>;

/**
 * The account that a key's JSON is for, or why it is invalid. Pure.
 *
 * @param endpoint the model's: an address that it may have, its tokens may come from too.
 */
export function accountIn(text: string, endpoint: string): ServiceAccount | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Possibly a path: the file isn't read, since a request can't name files of the runner.
    return "isn't JSON: give the content of the service account's key, not its path";
  }
  const read = accountSchema.safeParse(value);
  if (!read.success) return "isn't a service account's key: type, client_email and private_key are needed";
  const url = new URL(read.data.token_uri);
  const isNeighbour =
    literalAddress(url) !== undefined &&
    URL.canParse(endpoint) &&
    literalAddress(new URL(endpoint)) === literalAddress(url);
  if (url.hostname !== "oauth2.googleapis.com" && !isNeighbour) return "has a token_uri that isn't Google's";
  return read.data;
}
