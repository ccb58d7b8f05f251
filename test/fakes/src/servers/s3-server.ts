import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { listening } from "./listening.js";
import { problemOf, type S3Key } from "./s3-signature.js";

/** `cut`: objects end half way, in both directions. `silent`: nothing is answered. */
export type S3Fault = 403 | 404 | 500 | "cut" | "silent";

const faultCodes = { 403: "AccessDenied", 404: "NoSuchBucket", 500: "InternalError" } as const;

interface Stored {
  readonly bytes: Buffer;
  readonly at: Date;
  readonly encryption: string | undefined;
}

/** Bytes of an object from which on `cut` concerns it. */
const cutBytes = 1_024;

/** Keys of a page, fewer than S3's, so that a list has more than one. */
const pageSize = 10;

/** One bucket of S3 on loopback, which refuses what isn't signed as it should be. */
export class S3Server {
  static readonly bucket = "ambit-test";
  readonly objects = new Map<string, Stored>();
  /** Parts of uploads that were neither completed nor aborted. */
  readonly uploads = new Map<string, Map<number, Buffer>>();
  /** What was refused for its signature. */
  readonly refused: string[] = [];
  fault: S3Fault | undefined;
  readonly #key: S3Key;

  private constructor(key: S3Key) {
    this.#key = key;
  }

  /** @param onEnd vitest's `onTestFinished`, or another that is called at the end */
  static async start(
    key: S3Key,
    onEnd: (close: () => void) => void,
  ): Promise<{ s3: S3Server; endpoint: string }> {
    const s3 = new S3Server(key);
    const server = createServer((incoming, outgoing) => {
      s3.#serve(incoming, outgoing).catch(() => outgoing.destroy());
    });
    return { s3, endpoint: `http://127.0.0.1:${await listening(server, onEnd)}` };
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { fault } = this;
    if (
      fault === "cut" &&
      incoming.method === "PUT" &&
      Number(incoming.headers["content-length"]) > cutBytes
    ) {
      incoming.once("data", () => incoming.destroy());
      return;
    }
    const body = await buffer(incoming);
    if (fault === "silent") return;
    const problem = problemOf(incoming, body, this.#key);
    if (problem !== undefined) this.refused.push(problem);
    if (typeof fault === "number") fail(outgoing, fault, faultCodes[fault]);
    else if (problem !== undefined) fail(outgoing, 403, problem);
    else this.#answer(incoming, body, outgoing);
  }

  #answer(
    { method, url = "", headers }: IncomingMessage,
    body: Buffer,
    outgoing: ServerResponse,
  ): ServerResponse {
    const { pathname, searchParams: query } = new URL(url, "http://s3.test");
    const [, bucket, ...rest] = pathname.split("/");
    const key = decodeURIComponent(rest.join("/"));
    if (bucket !== S3Server.bucket) return fail(outgoing, 404, "NoSuchBucket");
    const upload = query.get("uploadId");
    if (key === "" && method === "GET") return this.#list(query, outgoing);
    if (key === "" && method === "POST" && query.has("delete")) return this.#deleteAll(body, outgoing);
    if (method === "POST" && query.has("uploads")) {
      const id = randomUUID();
      this.uploads.set(id, new Map());
      return xml(
        outgoing,
        `<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`,
      );
    }
    if (upload !== null) return this.#upload(method, key, upload, query, body, outgoing);
    if (method === "PUT") return this.#put(key, body, headers, outgoing);
    if (method === "DELETE") {
      this.objects.delete(key);
      return outgoing.writeHead(204).end();
    }
    const found = this.objects.get(key);
    if (found === undefined) return fail(outgoing, 404, "NoSuchKey");
    const tag = tagOf(found.bytes);
    if (headers["if-match"] !== undefined && headers["if-match"] !== tag)
      return fail(outgoing, 412, "PreconditionFailed");
    outgoing.writeHead(200, {
      "content-length": found.bytes.length,
      etag: tag,
      "last-modified": found.at.toUTCString(),
    });
    if (method === "HEAD") return outgoing.end();
    if (this.fault !== "cut" || found.bytes.length <= cutBytes) return outgoing.end(found.bytes);
    outgoing.write(found.bytes.subarray(0, found.bytes.length / 2), () => outgoing.destroy());
    return outgoing;
  }

  #put(
    key: string,
    bytes: Buffer,
    headers: IncomingMessage["headers"],
    outgoing: ServerResponse,
  ): ServerResponse {
    const encryption = headers["x-amz-server-side-encryption"];
    this.objects.set(key, {
      bytes,
      at: new Date(),
      encryption: encryption === undefined ? undefined : String(encryption),
    });
    return outgoing.writeHead(200, { etag: tagOf(bytes) }).end();
  }

  #upload(
    method: string | undefined,
    key: string,
    id: string,
    query: URLSearchParams,
    body: Buffer,
    outgoing: ServerResponse,
  ): ServerResponse {
    const parts = this.uploads.get(id);
    if (parts === undefined) return fail(outgoing, 404, "NoSuchUpload");
    if (method === "PUT") {
      parts.set(Number(query.get("partNumber")), body);
      return outgoing.writeHead(200, { etag: tagOf(body) }).end();
    }
    this.uploads.delete(id);
    if (method === "DELETE") {
      return outgoing.writeHead(204).end();
    }
    const numbers = [...body.toString().matchAll(/<PartNumber>(\d+)<\/PartNumber>/g)].map((one) =>
      Number(one[1]),
    );
    const whole = Buffer.concat(numbers.map((number) => parts.get(number) ?? Buffer.alloc(0)));
    this.objects.set(key, { bytes: whole, at: new Date(), encryption: undefined });
    return xml(
      outgoing,
      `<CompleteMultipartUploadResult><Key>${key}</Key><ETag>${tagOf(whole)}</ETag></CompleteMultipartUploadResult>`,
    );
  }

  #list(query: URLSearchParams, outgoing: ServerResponse): ServerResponse {
    const prefix = query.get("prefix") ?? "";
    const after = query.get("continuation-token") ?? "";
    const keys = [...this.objects.keys()].filter((key) => key.startsWith(prefix) && key > after).sort();
    const page = keys.slice(0, pageSize);
    const entries = page.map((key) => {
      const { at, bytes } = this.objects.get(key) ?? { at: new Date(0), bytes: Buffer.alloc(0) };
      return `<Contents><Key>${key}</Key><LastModified>${at.toISOString()}</LastModified><Size>${bytes.length}</Size></Contents>`;
    });
    const isCut = keys.length > page.length;
    const next = isCut ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : "";
    return xml(
      outgoing,
      `<ListBucketResult><IsTruncated>${isCut}</IsTruncated>${next}${entries.join("")}</ListBucketResult>`,
    );
  }

  #deleteAll(body: Buffer, outgoing: ServerResponse): ServerResponse {
    for (const [, key = ""] of body.toString().matchAll(/<Key>([^<]*)<\/Key>/g)) this.objects.delete(key);
    return xml(outgoing, "<DeleteResult></DeleteResult>");
  }
}

function tagOf(bytes: Uint8Array): string {
  return `"${createHash("md5").update(bytes).digest("hex")}"`;
}

function xml(outgoing: ServerResponse, content: string): ServerResponse {
  return outgoing
    .writeHead(200, { "content-type": "application/xml" })
    .end(`<?xml version="1.0"?>${content}`);
}

function fail(outgoing: ServerResponse, status: number, code: string): ServerResponse {
  const content = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`;
  return outgoing.writeHead(status, { "content-type": "application/xml", connection: "close" }).end(content);
}
