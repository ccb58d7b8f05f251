import { setImmediate as nextTurn } from "node:timers/promises";
import { idOfRun, NotFound } from "@ambit/core";
import type { StoredRun } from "@ambit/durable/store";
import { fileUrl } from "@ambit/runner";
import type { KeptOutputs } from "@ambit/workspace";
import type { Blob } from "@ambit/workspace/blobs";
import { callerOf, principalOf } from "../../tenants/caller.js";
import { issuerIn } from "../caller/operator-access.js";
import { sendLargeJson, sendUntrusted } from "../response/send.js";
import type { StoredRoute } from "../route/route.js";
import type { OutputFilesResponse } from "../route-schemas.js";
import { visibleRun } from "./find-run.js";
import { urlTtl } from "./parameters.js";

/** Answers a request. */
type Answer = () => Promise<void>;

/** `GET /runs/:runId/files` */
export async function handleOutputFiles(route: StoredRoute): Promise<void> {
  const { outgoing } = route.exchange;
  const lifetimeMs = route.query.read(urlTtl);
  await withOutputs(route, async ({ manifest, length }, run) => {
    const files = manifest.files.map(({ name: _name, ...file }) => file);
    const urls = lifetimeMs === undefined ? undefined : await urlsOf(route, run, files, lifetimeMs);
    const body = {
      files: urls === undefined ? files : files.map((file, index) => ({ ...file, url: urls[index] })),
    } satisfies OutputFilesResponse;
    return whileUnread(route, length, () => sendLargeJson(outgoing, 200, body));
  });
}

/** Tokens that are made in one turn of the event loop: each takes some 20 µs. */
const tokensPerTurn = 100;

/** A URL for each of a run's files, which opens this file and nothing else, as long as its caller's own token at most. */
async function urlsOf(
  { exchange: { incoming }, context: { pageTokens, operator, publicUrl } }: StoredRoute,
  { id: runKey, project }: Pick<StoredRun, "id" | "project">,
  files: readonly { readonly path: string }[],
  lifetimeMs: number,
): Promise<readonly string[]> {
  const caller = callerOf(incoming);
  const makerEndsAt = caller.kind === "page" ? caller.grant.expiresAt : Number.POSITIVE_INFINITY;
  const expiresAt = Math.min(pageTokens.now() + lifetimeMs, makerEndsAt);
  const issuer = issuerIn(principalOf(caller), operator);
  const make = await pageTokens.maker();
  const urls: string[] = [];
  for (const { path } of files) {
    const token = make({ issuer, project, expiresAt, scope: { kind: "file", runKey, path } });
    urls.push(`${publicUrl}${fileUrl(idOfRun(runKey), path)}?token=${token}`);
    if (urls.length % tokensPerTurn === 0) await nextTurn();
  }
  return urls;
}

/** `GET /runs/:runId/files/:path` */
export async function handleOutputFile(route: StoredRoute): Promise<void> {
  const path = route.path("path");
  await withOutputs(route, async (outputs) => {
    const file = await outputs.file(path);
    if (file === undefined) throw new NotFound(`The run's outputs have no file '${path}'.`);
    return sending(route, file, "application/octet-stream");
  });
}

/** `GET /runs/:runId/patch` */
export async function handlePatch(route: StoredRoute): Promise<void> {
  await withOutputs(route, async (outputs) => {
    const patch = await outputs.patch();
    if (patch === undefined)
      throw new NotFound("The run has no patch: its request must have outputs.patch: true.");
    return sending(route, patch, "text/x-diff");
  });
}

/** `GET /runs/:runId/bundle` */
export async function handleBundle(route: StoredRoute): Promise<void> {
  await withOutputs(route, async (outputs) => {
    const bundle = await outputs.bundle();
    if (bundle === undefined)
      throw new NotFound(
        "The run has no commit: its request must have outputs.git, and something must have changed.",
      );
    return sending(route, bundle, "application/octet-stream");
  });
}

/** `GET /runs/:runId/archive` */
export async function handleArchive(route: StoredRoute): Promise<void> {
  await withOutputs(route, (outputs) =>
    whileUnread(route, outputs.length, () =>
      send(route, outputs.archive(), { "content-type": "application/x-tar" }),
    ),
  );
}

/** @param choose what answers: the list of files, which may be large, is kept no longer than it needs it. @throws NotFound, AtCapacity */
async function withOutputs(
  route: StoredRoute,
  choose: (outputs: KeptOutputs, run: StoredRun) => Answer | Promise<Answer>,
): Promise<void> {
  const id = route.path("runId");
  const run = await visibleRun(route, id);
  await route.context.readers.reading(run, async () => {
    const answer = await chosen(route, run, choose);
    await answer();
  });
}

async function chosen(
  { context, path }: StoredRoute,
  run: StoredRun,
  choose: (outputs: KeptOutputs, run: StoredRun) => Answer | Promise<Answer>,
): Promise<Answer> {
  const outputs = await context.files.of(run.id);
  if (outputs === undefined)
    throw new NotFound(
      `The run '${path("runId")}' has no outputs: its request asked for none, or it hasn't ended, or failed before.`,
    );
  return choose(outputs, run);
}

/** For what keeps the list of files, of so many characters, until its reader has taken everything. */
function whileUnread({ context, exchange }: StoredRoute, length: number, answer: Answer): Answer {
  return async () => {
    using _unread = context.unread.hold(length, exchange.outgoing);
    await answer();
  };
}

function sending(route: StoredRoute, { content, size }: Blob, mediaType: string): Answer {
  return () => send(route, content, { "content-type": mediaType, "content-length": size });
}

function send(
  { exchange, context: { log } }: StoredRoute,
  content: AsyncIterable<Uint8Array>,
  headers: Readonly<Record<string, string | number>>,
): Promise<void> {
  return sendUntrusted(exchange, content, headers, log);
}
