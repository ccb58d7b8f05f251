import { readdirSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { NotFound } from "@ambit/core";
import { ConfigurationInvalid } from "../../configuration/problems.js";

/** The built page, a part of this package. */
const builtPage = new URL("../../console/", import.meta.url);

const mediaTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/** Nothing of another origin, nothing inline, and no text that becomes markup or a script. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const headersOfAll: Readonly<Record<string, string>> = {
  "content-security-policy": policy,
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

interface PageFile {
  readonly plain: Uint8Array<ArrayBuffer>;
  /** Compressed when it is first asked for. */
  zipped?: Uint8Array<ArrayBuffer>;
}

/** The console's files, kept in memory: about a megabyte. */
export class ConsolePage {
  readonly #files: ReadonlyMap<string, PageFile>;

  /** @throws ConfigurationInvalid if the page isn't built */
  constructor(folder = fileURLToPath(builtPage)) {
    this.#files = new Map(filesIn(folder).map((path) => [path, { plain: bytesOf(join(folder, path)) }]));
    if (!this.#files.has("index.html"))
      throw new ConfigurationInvalid("server.console", [
        "the console isn't built here: run `npm run build:console`",
      ]);
  }

  /** @param path below `/console`; every path without a file is one of the page's own. @throws NotFound */
  answer(path: string, acceptEncoding: string): Response {
    const name = path.replace(/^\/+/, "");
    const isAsset = name.startsWith("assets/");
    const asset = this.#files.get(name);
    if (asset === undefined && isAsset) throw new NotFound("Not found");
    const served = asset === undefined ? "index.html" : name;
    const file = asset ?? this.#files.get(served);
    if (file === undefined) throw new NotFound("Not found");
    const zips = /\bgzip\b/.test(acceptEncoding);
    if (zips) file.zipped ??= new Uint8Array(gzipSync(file.plain, { level: 9 }));
    const body = (zips ? file.zipped : undefined) ?? file.plain;
    return new Response(body, {
      headers: {
        ...headersOfAll,
        "content-type": mediaTypes[extname(served)] ?? "application/octet-stream",
        "content-length": String(body.byteLength),
        vary: "accept-encoding",
        // The name of an asset has its digest.
        "cache-control": isAsset ? "public, max-age=31536000, immutable" : "no-cache",
        ...(zips ? { "content-encoding": "gzip" } : {}),
      },
    });
  }
}

const bytesOf = (path: string) => new Uint8Array(readFileSync(path));

function filesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length).replace(/^\/+/, ""));
  } catch {
    return [];
  }
}
