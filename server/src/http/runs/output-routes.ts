import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { NotFound } from "@ambit/core";
import type { KeptOutputs } from "@ambit/workspace";
import { sendJson } from "../response/send.js";
import type { OutputFilesResponse } from "../route-schemas.js";
import { visibleRun } from "./find-run.js";
import type { StoredRoute } from "./stored-route.js";

/** A browser must neither show nor guess what a run's agent wrote. */
const untrusted = {
  "cache-control": "no-store",
  "content-disposition": "attachment",
  "content-security-policy": "sandbox",
  "x-content-type-options": "nosniff",
};

/** `GET /runs/:runId/files` */
export async function handleOutputFiles(route: StoredRoute): Promise<void> {
  await withOutputs(route, async ({ manifest }) => {
    const files = manifest.files.map(({ name: _name, ...file }) => file);
    sendJson(route.exchange.outgoing, 200, { files } satisfies OutputFilesResponse);
  });
}

/** `GET /runs/:runId/files/:path` */
export async function handleOutputFile(route: StoredRoute): Promise<void> {
  const path = route.path("path");
  await withOutputs(route, async (outputs) => {
    const file = await outputs.file(path);
    if (file === undefined) throw new NotFound(`The run's outputs have no file '${path}'.`);
    await send(route, file.content, {
      "content-type": "application/octet-stream",
      "content-length": file.size,
    });
  });
}

/** `GET /runs/:runId/patch` */
export async function handlePatch(route: StoredRoute): Promise<void> {
  await withOutputs(route, async (outputs) => {
    const patch = await outputs.patch();
    if (patch === undefined)
      throw new NotFound("The run has no patch: its request must have outputs.patch: true.");
    await send(route, patch.content, { "content-type": "text/x-diff", "content-length": patch.size });
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
    const headers = { "content-type": "application/octet-stream", "content-length": bundle.size };
    await send(route, bundle.content, headers);
  });
}

/** `GET /runs/:runId/archive` */
export async function handleArchive(route: StoredRoute): Promise<void> {
  await withOutputs(route, (outputs) =>
    send(route, outputs.archive(), { "content-type": "application/x-tar" }),
  );
}

/** @throws NotFound, AtCapacity */
async function withOutputs(route: StoredRoute, use: (outputs: KeptOutputs) => Promise<void>): Promise<void> {
  const id = route.path("runId");
  const run = await visibleRun(route, id);
  await route.context.readers.reading(run, async () => {
    const outputs = await route.context.files.of(run.id);
    if (outputs === undefined)
      throw new NotFound(
        `The run '${id}' has no outputs: its request asked for none, or it hasn't ended, or failed before.`,
      );
    await use(outputs);
  });
}

/** As fast as its reader takes it. */
async function send(
  { exchange: { outgoing }, context }: StoredRoute,
  content: AsyncIterable<Uint8Array>,
  headers: Readonly<Record<string, string | number>>,
): Promise<void> {
  if (outgoing.destroyed) return;
  outgoing.writeHead(200, { ...untrusted, ...headers });
  try {
    await pipeline(Readable.from(content), outgoing);
  } catch (error) {
    // The connection has ended, which is all that a reader can learn after the header.
    context.log.debug({ error }, "a run's files were not sent to their end");
  }
}
