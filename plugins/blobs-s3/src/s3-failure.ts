import { messageOf, StoreFailed } from "@ambit/core/plugin";

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
  const known = fixes[name] ?? (status === 403 ? fixes.AccessDenied : undefined);
  const reason = known ?? (status === undefined ? messageOf(thrown) : `${name}, status ${status}`);
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
