/** Shorter ones occur in any base64 text by chance. */
const minAlignedLength = 8;

/**
 * How a text may contain a secret: plain, escaped in JSON (once, twice), encoded for a URL or a form, in hex, in base64
 * or base64url, also in the middle of what was encoded with it (`user:secret`). Pure.
 */
export function formsOf(given: string): readonly string[] {
  // A lone surrogate can't be encoded, and comes out of every encoder as the replacement character.
  const secret = Buffer.from(given).toString();
  const inJson = JSON.stringify(secret).slice(1, -1);
  const inUrl = encodeURIComponent(secret);
  const inForm = new URLSearchParams([["", secret]]).toString().slice(1);
  const hex = Buffer.from(secret).toString("hex");
  const base64 = [Buffer.from(secret).toString("base64").replace(/=+$/, ""), ...alignedBase64(secret)];
  const forms = [
    given,
    secret,
    inJson,
    JSON.stringify(inJson).slice(1, -1),
    ...[inUrl, inForm].flatMap((encoded) => [encoded, lowerEscapes(encoded)]),
    hex,
    hex.toUpperCase(),
    ...base64.flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")]),
  ];
  return [...new Set(forms)].filter((form) => form !== "");
}

/**
 * Base64 encodes three bytes as four characters, so the same bytes look different at each of three offsets. For each
 * offset: the characters that depend on the secret alone; up to two at its edges also hold bits of its neighbours.
 */
function alignedBase64(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    const form = encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
    return form.length < minAlignedLength ? [] : [form];
  });
}

function lowerEscapes(encoded: string): string {
  return encoded.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());
}
