import { createHash, randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { messageOf, StoreFailed, type UpstreamProxy } from "@ambit/core/plugin";
import { guardedAgents } from "@ambit/egress/client";
import {
  type Blob,
  type BlobFile,
  type BlobOwner,
  type Blobs,
  requireBlobName,
} from "@ambit/workspace/blobs";
import {
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import type { S3BlobsConfig } from "./config.js";

/** Of an upload whose length isn't known: what it holds in memory. S3 takes 10,000 parts, so a file has 80 GB at most. */
const partBytes = 8 * 1024 * 1024;

/** Owners whose mark this process has written lately. */
const maxMarked = 1_000;

/** Connections at a time: others wait. A slow reader holds one of those for contents for long, so nothing else waits for these. */
const maxSockets = { contents: 1_024, others: 32 } as const;

export function openS3(config: S3BlobsConfig, temporary: boolean, upstreamProxy?: UpstreamProxy): Blobs {
  const { endpoint, region, timeoutMs, maxAttempts, accessKeyId, secretAccessKey, sessionToken } = config;
  const clientWith = (most: number) => {
    const agents = guardedAgents({ upstreamProxy }, { keepAlive: true, maxSockets: most });
    return new S3Client({
      maxAttempts,
      forcePathStyle: config.forcePathStyle ?? endpoint !== undefined,
      // Not every service with S3's API knows the newer checksums. A signature covers what is uploaded.
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      requestHandler: {
        connectionTimeout: Math.min(timeoutMs, 10_000),
        socketTimeout: timeoutMs,
        httpAgent: agents.http,
        httpsAgent: agents.https,
      },
      ...(endpoint === undefined ? {} : { endpoint, region: "us-east-1" }),
      ...(region === undefined ? {} : { region }),
      ...(accessKeyId === undefined || secretAccessKey === undefined
        ? {}
        : { credentials: { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) } }),
    });
  };
  const client = clientWith(maxSockets.others);
  const contents = clientWith(maxSockets.contents);
  return new S3Blobs(
    client,
    contents,
    config,
    temporary ? `${config.prefix}temporary/${randomUUID()}/` : undefined,
  );
}

/**
 * An owner's files are `files/<digest of the owner>/<name>`, and `owners/<digest>` holds its name: a list of these is a list
 * of all owners, with the time of each.
 */
class S3Blobs implements Blobs {
  readonly #client: S3Client;
  /** For what callers read at their own pace. */
  readonly #contents: S3Client;
  readonly #prefix: string;
  readonly #isTemporary: boolean;
  readonly #bucket: { readonly Bucket: string };
  readonly #encryption: Pick<PutObjectCommand["input"], "ServerSideEncryption" | "SSEKMSKeyId">;
  readonly #marked = new Set<string>();

  constructor(
    client: S3Client,
    contents: S3Client,
    { bucket, prefix, serverSideEncryption, kmsKeyId }: S3BlobsConfig,
    temporary: string | undefined,
  ) {
    this.#client = client;
    this.#contents = contents;
    this.#prefix = temporary ?? prefix;
    this.#isTemporary = temporary !== undefined;
    this.#bucket = { Bucket: bucket };
    this.#encryption = { ServerSideEncryption: serverSideEncryption, SSEKMSKeyId: kmsKeyId };
  }

  async put(owner: string, name: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    const key = this.#keyOf(owner, name);
    let broken: { readonly error: unknown } | undefined;
    const watched = failingWith(content, (error) => {
      broken = { error };
    });
    const body = Readable.from(watched, { objectMode: false });
    try {
      await this.#mark(owner);
      const upload = new Upload({
        client: this.#client,
        params: { ...this.#bucket, ...this.#encryption, Key: key, Body: body },
        partSize: partBytes,
        queueSize: 1,
        leavePartsOnError: false,
      });
      await upload.done();
    } catch (thrown) {
      if (broken !== undefined) throw broken.error;
      throw s3Failure("keep a file", thrown);
    } finally {
      body.destroy();
    }
  }

  async get(owner: string, name: string): Promise<Blob | undefined> {
    const object = { ...this.#bucket, Key: this.#keyOf(owner, name) };
    try {
      const { ContentLength: size = 0, ETag } = await this.#client.send(new HeadObjectCommand(object));
      // Asked for when it is read: a connection that nobody reads would stay open.
      return { size, content: this.#read({ ...object, IfMatch: ETag }, size) };
    } catch (thrown) {
      // An answer without a body doesn't say whether the bucket is missing too.
      if (isMissing(thrown) && (await this.#textIn(object.Key)) === undefined) return undefined;
      throw s3Failure("find a file", thrown);
    }
  }

  async *files(owner: string): AsyncGenerator<BlobFile, void, undefined> {
    const folder = `${this.#prefix}files/${digestOf(owner)}/`;
    for await (const { Key, LastModified } of this.#list(folder))
      yield { name: Key.slice(folder.length), at: LastModified?.getTime() ?? 0 };
  }

  async deleteFile(owner: string, name: string): Promise<void> {
    try {
      await this.#client.send(new DeleteObjectCommand({ ...this.#bucket, Key: this.#keyOf(owner, name) }));
    } catch (thrown) {
      throw s3Failure("delete a file", thrown);
    }
  }

  async *owners(before: number): AsyncGenerator<BlobOwner, void, undefined> {
    for await (const { Key, LastModified } of this.#list(`${this.#prefix}owners/`)) {
      const since = LastModified?.getTime() ?? 0;
      if (since >= before) continue;
      const owner = await this.#textIn(Key);
      if (owner !== undefined) yield { owner, since };
    }
  }

  async delete(owner: string): Promise<void> {
    this.#marked.delete(digestOf(owner));
    await this.#deleteAll(`${this.#prefix}files/${digestOf(owner)}/`);
    try {
      // Last: while files of it are left, the owner is listed.
      await this.#client.send(new DeleteObjectCommand({ ...this.#bucket, Key: this.#markOf(owner) }));
    } catch (thrown) {
      throw s3Failure("delete a run's files", thrown);
    }
  }

  async close(): Promise<void> {
    try {
      if (this.#isTemporary) await this.#deleteAll(this.#prefix);
    } finally {
      this.#client.destroy();
      this.#contents.destroy();
    }
  }

  async *#read(input: GetObjectCommand["input"], size: number): AsyncGenerator<Uint8Array, void, undefined> {
    let body: Readable | undefined;
    let read = 0;
    try {
      const { Body } = await this.#contents.send(new GetObjectCommand(input));
      if (!(Body instanceof Readable)) throw new TypeError("S3's client returned no stream");
      body = Body;
      for await (const bytes of body) {
        read += bytes.length;
        yield bytes;
      }
      if (read !== size) throw new Error(`${read} of ${size} bytes arrived`);
    } catch (thrown) {
      throw s3Failure("read a file", thrown);
    } finally {
      body?.destroy();
    }
  }

  async #mark(owner: string): Promise<void> {
    const digest = digestOf(owner);
    if (this.#marked.has(digest)) return;
    const mark = { ...this.#bucket, Key: this.#markOf(owner) };
    // Not written again: its time is the one of the first file.
    if ((await this.#textIn(mark.Key)) === undefined)
      await this.#client.send(new PutObjectCommand({ ...mark, ...this.#encryption, Body: owner }));
    const [oldest] = this.#marked;
    if (this.#marked.size >= maxMarked && oldest !== undefined) this.#marked.delete(oldest);
    this.#marked.add(digest);
  }

  /** Of a small object; undefined where there is none. */
  async #textIn(Key: string): Promise<string | undefined> {
    try {
      const { Body } = await this.#client.send(new GetObjectCommand({ ...this.#bucket, Key }));
      return await Body?.transformToString();
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw s3Failure("find a file", thrown);
    }
  }

  async *#list(
    prefix: string,
  ): AsyncGenerator<{ readonly Key: string; readonly LastModified?: Date | undefined }> {
    let ContinuationToken: string | undefined;
    do {
      const command = new ListObjectsV2Command({ ...this.#bucket, Prefix: prefix, ContinuationToken });
      const page = await this.#client.send(command).catch((thrown: unknown) => {
        throw s3Failure("list files", thrown);
      });
      for (const { Key, LastModified } of page.Contents ?? [])
        if (Key !== undefined) yield { Key, LastModified };
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken !== undefined);
  }

  async #deleteAll(prefix: string): Promise<void> {
    let Objects: { Key: string }[] = [];
    const flush = async () => {
      if (Objects.length === 0) return;
      const command = new DeleteObjectsCommand({ ...this.#bucket, Delete: { Objects, Quiet: true } });
      const { Errors: [left] = [] } = await this.#client.send(command);
      if (left !== undefined) throw new Error(`${left.Code ?? "Error"}: ${left.Message ?? "no reason"}`);
      Objects = [];
    };
    try {
      for await (const { Key } of this.#list(prefix)) {
        Objects.push({ Key });
        if (Objects.length === 1_000) await flush();
      }
      await flush();
    } catch (thrown) {
      throw s3Failure("delete files", thrown);
    }
  }

  #markOf(owner: string): string {
    return `${this.#prefix}owners/${digestOf(owner)}`;
  }

  #keyOf(owner: string, name: string): string {
    return `${this.#prefix}files/${digestOf(owner)}/${requireBlobName(name)}`;
  }
}

function digestOf(owner: string): string {
  return createHash("sha256").update(owner).digest("hex");
}

/** Tells the content's own errors from those of its reader. */
async function* failingWith(
  content: AsyncIterable<Uint8Array>,
  onError: (error: unknown) => void,
): AsyncGenerator<Uint8Array, void, undefined> {
  const iterator = content[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await iterator.next().catch((error: unknown) => {
        onError(error);
        throw error;
      });
      if (next.done === true) return;
      yield next.value;
    }
  } finally {
    await iterator.return?.();
  }
}

const fixes: Readonly<Record<string, string>> = {
  NoSuchBucket: "the bucket doesn't exist: create it, or correct `bucket` and `region` of @ambit/blobs-s3",
  PermanentRedirect: "the bucket is in another region: correct `region` of @ambit/blobs-s3",
  AccessDenied:
    "access was denied: the credentials need s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload and s3:ListBucket",
  InvalidAccessKeyId: "the access key is unknown to the service: correct the credentials of @ambit/blobs-s3",
  SignatureDoesNotMatch: "the secret key is wrong: correct the credentials of @ambit/blobs-s3",
  ExpiredToken: "the credentials have expired: renew them",
  CredentialsProviderError:
    "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or accessKeyId and secretAccessKey of @ambit/blobs-s3",
  TimeoutError:
    "the service didn't answer in time: check `endpoint`, or raise `timeoutMs` of @ambit/blobs-s3",
};

/** An answer of the service, or of the network, as one who operates the runner can use it. */
export function s3Failure(what: string, thrown: unknown): StoreFailed {
  if (thrown instanceof StoreFailed) return thrown;
  const status = statusOf(thrown);
  const name = thrown instanceof Error ? thrown.name : "";
  const fix = fixes[name] ?? (status === 403 ? fixes.AccessDenied : undefined);
  const reason = fix ?? (status === undefined ? messageOf(thrown) : `${name}, status ${status}`);
  return new StoreFailed(`S3 couldn't ${what}: ${reason}.`, { cause: thrown });
}

/** Whether there is no such object. */
export function isMissing(thrown: unknown): boolean {
  // A missing bucket is 404 too, but nothing that its caller can be told.
  if (thrown instanceof Error && thrown.name === "NoSuchBucket") return false;
  return statusOf(thrown) === 404;
}

function statusOf(thrown: unknown): number | undefined {
  if (typeof thrown !== "object" || thrown === null || !("$metadata" in thrown)) return undefined;
  const { $metadata: metadata } = thrown;
  if (typeof metadata !== "object" || metadata === null || !("httpStatusCode" in metadata)) return undefined;
  return typeof metadata.httpStatusCode === "number" ? metadata.httpStatusCode : undefined;
}
