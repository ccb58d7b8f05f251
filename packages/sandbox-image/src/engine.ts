import { createReadStream } from "node:fs";
import { request as httpRequest } from "node:http";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { imageSettings, type RecipeOptions, recipeOf, sandboxImageName } from "./recipe.js";

/** Where Docker listens, unless `DOCKER_HOST` says otherwise. */
const defaultEngine = "unix:///var/run/docker.sock";

/** The socket's path of a Docker or Podman engine. @throws Error for an engine that isn't on a unix socket. */
export function socketOf(engine: string = process.env.DOCKER_HOST || defaultEngine): string {
  const [, path] = /^unix:\/\/(\/.*)$/.exec(engine) ?? [];
  if (path !== undefined) return path;
  throw new Error(
    `"${engine}" isn't a unix socket (unix:///…): write the image with --output and load it there with docker import`,
  );
}

export interface LoadOptions extends RecipeOptions {
  /** A `unix://` address. Default: `DOCKER_HOST`, else Docker's own. */
  readonly engine?: string | undefined;
}

/** Whether the engine has the image of this recipe. Rejects if the engine doesn't answer. */
export async function hasSandboxImage({ engine, ...options }: LoadOptions = {}): Promise<boolean> {
  const { status, body } = await ask(socketOf(engine), "GET", `/images/${sandboxImageName(options)}/json`);
  if (status !== 200 && status !== 404) throw new Error(`the engine answered ${status}: ${body}`);
  return status === 200;
}

/** Imports an archive that `buildSandboxImage` made from the same recipe. Resolves with the image's name. */
export async function loadSandboxImage(
  archive: string,
  { engine, ...options }: LoadOptions = {},
): Promise<string> {
  const name = sandboxImageName(options);
  // Podman takes a tag here only, and ignores one of its own.
  const query = new URLSearchParams({ fromSrc: "-", repo: name });
  for (const setting of imageSettings(recipeOf(options))) query.append("changes", setting);
  const { status, body } = await ask(socketOf(engine), "POST", `/images/create?${query}`, archive);
  // A failure while it reads comes within an answer of 200.
  if (status !== 200 || body.includes('"error"')) throw new Error(`the engine answered ${status}: ${body}`);
  return name;
}

interface EngineResponse {
  readonly status: number | undefined;
  readonly body: string;
}

async function ask(
  socketPath: string,
  method: string,
  path: string,
  archive?: string,
): Promise<EngineResponse> {
  const request = httpRequest({ socketPath, method, path, headers: { host: "engine" } });
  const response = new Promise<EngineResponse>((resolve, reject) => {
    request.on("error", reject);
    request.on("response", (incoming) => {
      text(incoming).then((body) => resolve({ status: incoming.statusCode, body: body.trim() }), reject);
    });
  });
  // An engine may answer, and close, before it has read everything: then its response tells more than the pipe's error.
  if (archive === undefined) request.end();
  else await Promise.race([pipeline(createReadStream(archive), request), response]);
  return await response;
}
