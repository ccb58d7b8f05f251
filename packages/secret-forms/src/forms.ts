/** One way to write a text: an encoder, such as those of JSON, URLs, HTML and base64. */
type Writing = (text: string) => string;

/** Shorter ones occur in any base64 text by chance. */
const minAlignedLength = 8;

/** Characters that encoders of URLs leave as they are. */
const unreserved = "A-Za-z0-9\\-._~";

const plain: Writing = (text) => text;

/** In a JSON string. @param slash how `/` is written. @param numbered characters that are written as `\u0026`. */
function json(numbered = "", digits: "lower" | "upper" = "lower", slash = "/"): Writing {
  return (text) => {
    const written = JSON.stringify(text).slice(1, -1).replaceAll("/", slash);
    if (numbered === "") return written;
    return written.replaceAll(/\\?[\s\S]/g, (unit) => {
      const character = unit.at(-1) ?? "";
      const isQuote = unit === '\\"';
      if ((unit.length > 1 && !isQuote) || !numbered.includes(character)) return unit;
      const code = character.charCodeAt(0).toString(16).padStart(4, "0");
      return `\\u${digits === "upper" ? code.toUpperCase() : code}`;
    });
  };
}

/** A JSON string within a JSON string. */
const twice =
  (writing: Writing): Writing =>
  (text) =>
    JSON.stringify(writing(text)).slice(1, -1);

/** With entities in place of characters. */
function html(entities: Readonly<Record<string, string>>): Writing {
  const all: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", ...entities };
  return (text) => text.replaceAll(/[&<>"'/=`+]/g, (character) => all[character] ?? character);
}

const escaped: Writing = (text) => Buffer.from(text).toString("hex").toUpperCase().replaceAll(/../g, "%$&");

/** Of ASCII: to encode one character at a time would take long where most have to be. */
const escapes = Array.from({ length: 128 }, (_, code) => escaped(String.fromCharCode(code)));

/** @param kept characters that aren't encoded, as a pattern's class. @param space how a space is written. */
function percent(kept: string, space = "%20"): Writing {
  const others = new RegExp(`[^${kept}]+`, "g");
  return (text) =>
    text
      .replaceAll(others, (run) => (run.length === 1 && escapes[run.charCodeAt(0)]) || escaped(run))
      .replaceAll("%20", space);
}

const lowerCase =
  (writing: Writing): Writing =>
  (text) =>
    writing(text).replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase());

const hex: Writing = (text) => Buffer.from(text).toString("hex");

const base64: Writing = (text) => Buffer.from(text).toString("base64").replace(/=+$/, "");

/**
 * Base64 encodes three bytes as four characters, so the same bytes look different at each of three offsets. The
 * characters that depend on the text alone; up to two at its edges also hold bits of its neighbours.
 */
function alignedBase64(before: 0 | 1 | 2): Writing {
  return (text) => {
    const bytes = Buffer.from(text);
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    const form = encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
    return form.length < minAlignedLength ? "" : form;
  };
}

const inUrlAlphabet =
  (writing: Writing): Writing =>
  (text) =>
    writing(text).replaceAll("+", "-").replaceAll("/", "_");

const inJson = [
  json(),
  // PHP.
  json("", "lower", "\\/"),
  // Go, Rails.
  json("<>&"),
];
const inUrls = [
  // encodeURIComponent, encodeURI.
  percent(`${unreserved}!'()*`),
  percent(`${unreserved}!'()*;/?:@&=+$,#`),
  // RFC 3986, and the same for a path (Python's quote).
  percent(unreserved),
  percent(`${unreserved}/`),
  // Forms: browsers and Java, then Python, Go and PHP.
  percent("A-Za-z0-9\\-._*", "+"),
  percent(unreserved, "+"),
];
const inBase64 = [base64, alignedBase64(0), alignedBase64(1), alignedBase64(2)];

const inBytes = [hex, (text: string) => hex(text).toUpperCase(), ...inBase64, ...inBase64.map(inUrlAlphabet)];

/** Every form that is searched for, in responses to a sandbox and in a run's output. */
const writings: readonly Writing[] = [
  plain,
  ...inJson,
  // Gson, .NET, PHP with JSON_HEX_*.
  json("<>&'="),
  json("<>&'\"+`", "upper"),
  json("<>&'\"", "upper", "\\/"),
  ...inJson.map(twice),
  // Text; attributes; most libraries; Python; Go; PHP; XML; Express, Mustache.
  html({}),
  html({ '"': "&quot;" }),
  html({ '"': "&quot;", "'": "&#39;" }),
  html({ '"': "&quot;", "'": "&#x27;" }),
  html({ '"': "&#34;", "'": "&#39;" }),
  html({ '"': "&#34;", "'": "&#39;", "+": "&#43;" }),
  html({ '"': "&quot;", "'": "&#039;" }),
  html({ '"': "&quot;", "'": "&apos;" }),
  html({ '"': "&quot;", "'": "&#39;", "/": "&#x2F;", "`": "&#x60;", "=": "&#x3D;" }),
  ...inUrls,
  ...inUrls.map(lowerCase),
  ...inBytes,
];

/** Those of a text that no encoder of text changes. */
const plainWritings: readonly Writing[] = [plain, ...inBytes];
const writingsOf = (secret: string) => (/^[A-Za-z0-9._-]*$/.test(secret) ? plainWritings : writings);

/**
 * How a text may contain a secret: plain, escaped in JSON (once, twice) or HTML, encoded for a URL or a form, in hex, in
 * base64 or base64url, also in the middle of what was encoded with it (`user:secret`). Pure.
 */
export function formsOf(given: string): readonly string[] {
  // A lone surrogate can't be encoded, and comes out of every encoder as the replacement character.
  const secret = Buffer.from(given).toString();
  const forms = new Set([given, ...writingsOf(secret).map((writing) => writing(secret))]);
  forms.delete("");
  return [...forms];
}

/** A form of a secret, and the same form of what takes its place. */
export interface PairedForm {
  readonly form: string;
  /** May have another length. */
  readonly standIn: string;
}

/** Every form of `formsOf`, each with the same form of a stand-in. Pure. */
export function pairedForms(given: string, standIn: string): readonly PairedForm[] {
  const secret = Buffer.from(given).toString();
  const pairs = new Map<string, string>();
  for (const writing of writingsOf(secret)) {
    const form = writing(secret);
    if (form !== "" && !pairs.has(form)) pairs.set(form, writing(standIn));
  }
  return [...pairs].map(([form, other]) => ({ form, standIn: other }));
}
