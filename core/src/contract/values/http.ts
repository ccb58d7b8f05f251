import { z } from "zod";

/** An absolute http or https URL, without the control characters and spaces that URL parsers drop silently. */
export const httpUrlSchema = z
  .string()
  // The OpenAPI document has this expression, and other languages can't read \p{…} in it.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused.
  .regex(/^[^\u0000-\u001f\u007f-\u009f\s]*$/, "must not contain spaces or control characters")
  .refine((url) => /^https?:\/\//i.test(url) && URL.canParse(url), {
    error: "must be an absolute http:// or https:// URL",
  })
  .refine((url) => !/^[a-z]+:\/\/[^/?#]*@/i.test(url), {
    error: "must not contain a user name or password: send them in a header",
  })
  .meta({ format: "uri" });

/** A field name of RFC 9110: a token. */
export const headerNameSchema = z
  .string()
  .regex(
    /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/,
    "must be an HTTP header name: letters, digits and any of !#$%&'*+.^_`|~-",
  );

/** A field value without line breaks, so that it can't add a header. */
export const headerValueSchema = z
  .string()
  .regex(/^[^\r\n\0]*$/, "must not contain a line break or NUL: a header's value is one line");

export const headersSchema = z.record(headerNameSchema, headerValueSchema);

/** The URL of a file, such as `https://example.com/app.tar.gz?version=2`. */
export const downloadUrlSchema = z
  .string()
  .max(4_096)
  .superRefine((text, context) => {
    const message = problemOfDownloadUrl(text);
    if (message !== undefined) context.addIssue({ code: "custom", message });
  });

function problemOfDownloadUrl(text: string): string | undefined {
  // Only text that every parser reads in the same way is accepted, so that none takes it for another address.
  if (!/^https?:\/\/[\x21-\x5b\x5d-\x7e]+$/.test(text) || !URL.canParse(text))
    return "must be a URL that begins with https://, such as https://example.com/app.tar.gz";
  const { username, password, hash } = new URL(text);
  if (`${username}${password}` !== "") return "must not hold a credential: put it into `credential`";
  return hash === "" ? undefined : "must not have a fragment";
}
