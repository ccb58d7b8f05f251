import { setImmediate as nextTurn } from "node:timers/promises";
import { idOfRun, NotFound } from "@ambit/core";
import type { StoredRun } from "@ambit/durable/store";
import { fileUrl } from "@ambit/runner";
import type { KeptOutputs } from "@ambit/workspace";
import type { Blob } from "@ambit/workspace/blobs";
import { callerOf, principalOf } from "../../tenants/caller.js";
import { issuerIn } from "../caller/operator-access.js";
import { sendLargeJson, sendUntrusted } from "../response/send.js";
import { bytes, failed, jsonResponse } from "../route/responses.js";
import { type HttpRoute, type StoredRoute, stored, streaming } from "../route/route.js";
import type { OutputFilesResponse } from "../route-schemas.js";
import { visibleRun } from "./find-run.js";
import { runsProject, urlTtl } from "./parameters.js";

/** What left runs' workspaces. */
export const outputRoutes: readonly HttpRoute[] = [
  {
    method: "GET",
    path: "/runs/{runId}/files",
    query: [runsProject, urlTtl],
    operation: {
      operationId: "outputFiles",
      tag: "Files",
      summary: "The files that left a run's workspace",
      description:
        "What the request's `outputs.include` matched when the run ended or paused. They are kept as long as the run is.",
      responses: {
        200: jsonResponse("Every file, with its size and digest.", "OutputFilesResponse"),
        ...failed(400, 404, 503),
      },
    },
    handle: stored(streaming(handleOutputFiles)),
  },
  {
    method: "GET",
    path: "/runs/{runId}/files/{path*}",
    query: [runsProject],
    operation: {
      operationId: "outputFile",
      tag: "Files",
      summary: "The content of one of these files; its path with its slashes",
      description: "Sent as an attachment without a type to guess, since an agent wrote it.",
      responses: { 200: bytes("application/octet-stream", "The file."), ...failed(400, 404, 503) },
    },
    handle: stored(streaming(handleOutputFile)),
  },
  {
    method: "GET",
    path: "/runs/{runId}/patch",
    query: [runsProject],
    operation: {
      operationId: "patch",
      tag: "Files",
      summary: "What a run changed in its workspace, in git's format",
      description: "Binary files are part of it. The request asks for it with `outputs.patch`.",
      responses: { 200: bytes("text/x-diff", "The patch: `git apply` reads it."), ...failed(400, 404, 503) },
    },
    handle: stored(streaming(handlePatch)),
  },
  {
    method: "GET",
    path: "/runs/{runId}/bundle",
    query: [runsProject],
    operation: {
      operationId: "bundle",
      tag: "Files",
      summary: "The commit of `outputs.git`, as a bundle of git",
      description: "It needs the commit that the workspace began with, which the receipt names.",
      responses: {
        200: bytes("application/octet-stream", "The bundle: `git fetch` reads it."),
        ...failed(400, 404, 503),
      },
    },
    handle: stored(streaming(handleBundle)),
  },
  {
    method: "GET",
    path: "/runs/{runId}/archive",
    query: [runsProject],
    operation: {
      operationId: "archive",
      tag: "Files",
      summary: "All files that left a run's workspace, as a tar archive",
      description:
        "The same files as `GET /runs/{runId}/files` lists, with their paths and whether they are executable.",
      responses: { 200: bytes("application/x-tar", "The archive."), ...failed(400, 404, 503) },
    },
    handle: stored(streaming(handleArchive)),
  },
];

/** Answers a request. */
type Answer = () => Promise<void>;

/** `GET /runs/:runId/files` */
async function handleOutputFiles(route: StoredRoute): Promise<void> {
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
async function handleOutputFile(route: StoredRoute): Promise<void> {
  const path = route.path("path");
  await withOutputs(route, async (outputs) => {
    const file = await outputs.file(path);
    if (file === undefined) throw new NotFound(`The run's outputs have no file '${path}'.`);
    return sending(route, file, "application/octet-stream");
  });
}

/** `GET /runs/:runId/patch` */
async function handlePatch(route: StoredRoute): Promise<void> {
  await withOutputs(route, async (outputs) => {
    const patch = await outputs.patch();
    if (patch === undefined)
      throw new NotFound("The run has no patch: its request must have outputs.patch: true.");
    return sending(route, patch, "text/x-diff");
  });
}

/** `GET /runs/:runId/bundle` */
async function handleBundle(route: StoredRoute): Promise<void> {
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
async function handleArchive(route: StoredRoute): Promise<void> {
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

/** An answer that keeps the list of files, of so many characters, until its reader has taken everything. */
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
