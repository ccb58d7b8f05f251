import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

export interface S3Key {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly region: string;
}

export type SignatureProblem =
  | "AccessDenied"
  | "InvalidAccessKeyId"
  | "SignatureDoesNotMatch"
  | "RequestTimeTooSkewed";

const maxSkewMs = 15 * 60_000;

/**
 * Checks a request as S3 does (Signature Version 4), without the client's own code.
 * @param url its address, as it was sent
 * @returns undefined for a valid one
 */
export function problemOf(
  { method = "", url = "", headers }: Pick<IncomingMessage, "method" | "url" | "headers">,
  body: Uint8Array,
  key: S3Key,
): SignatureProblem | undefined {
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      headers.authorization ?? "",
    );
  if (match === null) return "AccessDenied";
  const [, accessKeyId = "", day = "", region = "", names = "", given = ""] = match;
  if (accessKeyId !== key.accessKeyId) return "InvalidAccessKeyId";
  const time = String(headers["x-amz-date"]);
  const sentAt = Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  if (!time.startsWith(day) || !(Math.abs(Date.now() - sentAt) < maxSkewMs)) return "RequestTimeTooSkewed";
  const signed = names.split(";");
  const isComplete = ["host", "x-amz-date", "x-amz-content-sha256"].every((name) => signed.includes(name));
  const digest = String(headers["x-amz-content-sha256"]);
  if (!isComplete || digest !== hash(body) || region !== key.region) return "SignatureDoesNotMatch";
  const [path = "", query = ""] = url.split("?");
  const canonical = [
    method,
    path,
    canonicalQuery(query),
    ...signed.map(
      (name) =>
        `${name}:${String(headers[name] ?? "")
          .trim()
          .replace(/ +/g, " ")}`,
    ),
    "",
    names,
    digest,
  ].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const secret = [day, region, "s3", "aws4_request"].reduce<string | Buffer>(
    (parent, part) => createHmac("sha256", parent).update(part).digest(),
    `AWS4${key.secretAccessKey}`,
  );
  const expected = createHmac("sha256", secret)
    .update(["AWS4-HMAC-SHA256", time, scope, hash(canonical)].join("\n"))
    .digest();
  return timingSafeEqual(expected, Buffer.from(given, "hex")) ? undefined : "SignatureDoesNotMatch";
}

function canonicalQuery(query: string): string {
  const encode = (text: string) =>
    encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
  const pairs = [...new URLSearchParams(query)].map(([name, value]) => `${encode(name)}=${encode(value)}`);
  return pairs.sort().join("&");
}

function hash(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
