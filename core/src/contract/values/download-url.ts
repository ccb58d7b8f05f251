import { z } from "zod";

/** Such as `https://example.com/app.tar.gz?version=2`. */
export const downloadUrlSchema = z
  .string()
  .max(4_096)
  .superRefine((text, context) => {
    const message = whyNoDownload(text);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });

function whyNoDownload(text: string): string | undefined {
  // As it was parsed, so that no other parser takes the same text for another address.
  if (!/^https?:\/\/[\x21-\x5b\x5d-\x7e]+$/.test(text) || !URL.canParse(text))
    return "must be a URL that begins with https://, such as https://example.com/app.tar.gz";
  const { username, password, hash } = new URL(text);
  if (`${username}${password}` !== "") return "must not hold a credential: put it into `credential`";
  return hash === "" ? undefined : "must not have a fragment";
}
