import { createHash } from "node:crypto";
import { SandboxFailed } from "@ambit/core";
import type { RunRequest, Source } from "@ambit/core/contract";
import type { Boundary, Sandbox } from "@ambit/core/plugin";
import { globsOf } from "../inside/paths.js";
import { runScript } from "../programs.js";
import { placeOf } from "../sources/source.js";

/** Counted up when what is kept changes its form or meaning. */
const version = 3;

interface KeyFacts {
  readonly request: Pick<RunRequest, "environment" | "workspace">;
  /** The boundary of the setup commands. */
  readonly boundary: Boundary;
  /** The backend's name. */
  readonly backend: string;
  /** What its sandboxes have installed, as far as that is known. */
  readonly system: string;
  /** The commit of each git source, by its index in the request. */
  readonly commits: ReadonlyMap<number, string>;
}

/** Names everything that decides what setup commands can make. No credential is part of it. Pure. */
export function environmentKey({ request, boundary, backend, system, commits }: KeyFacts): string {
  const { setup = [], env = {}, devcontainer, inputs } = request.environment ?? {};
  const isInput = inputs && globsOf(inputs).matches;
  const sources = (request.workspace?.sources ?? []).map((source, index) =>
    identityOf(source, commits.get(index), isInput),
  );
  const { network, filesystem, resources } = boundary;
  const facts = [
    version,
    backend,
    system,
    sources,
    setup,
    Object.entries(env).sort(([one], [other]) => (one < other ? -1 : 1)),
    { network, filesystem, resources },
    // The commit decides the file's contents.
    ...(devcontainer === undefined ? [] : [devcontainer]),
    // What is kept differs then: it has no files of the sources.
    ...(inputs === undefined ? [] : ["inputs"]),
  ];
  return createHash("sha256").update(JSON.stringify(facts)).digest("hex");
}

function identityOf(
  source: Source,
  commit: string | undefined,
  isInput: ((path: string) => boolean) | undefined,
): unknown {
  switch (source.type) {
    case "git": {
      // The credential doesn't decide what comes in, and the name of the branch only what `.git` says of it.
      const { credential: _credential, ref, ...rest } = source;
      return source.repository ? { ...rest, ref, commit } : { ...rest, commit };
    }
    case "archive": {
      // The digest decides what comes in. The URL decides who may have it: its host is asked before the environment is used.
      const { data, url, credential: _credential, ...rest } = source;
      if (data !== undefined) return { ...rest, data: createHash("sha256").update(data).digest("hex") };
      return url === undefined ? rest : { ...rest, url: withoutSignature(url) };
    }
    case "files": {
      const place = placeOf(source);
      const files = source.files.filter(({ path }) => isInput?.(place + path) ?? true);
      return { ...source, files: createHash("sha256").update(JSON.stringify(files)).digest("hex") };
    }
  }
}

/**
 * What proves in a URL that its bearer may read it, and changes each time: AWS' and Google's signatures, Azure's shared access
 * signatures, CloudFront's signed URLs.
 */
const signatureParameter =
  /^(?:x-(?:amz|goog)-.+|googleaccessid|awsaccesskeyid|expires|signature|key-pair-id|policy|s[vertp]|sig|spr|sip|ss|srt|sk[svet]|sk[ot]id)$/i;

/** The URL as it names one thing, however it is signed. */
function withoutSignature(url: string): string {
  const named = new URL(url);
  for (const name of [...named.searchParams.keys()])
    if (signatureParameter.test(name)) named.searchParams.delete(name);
  named.hash = "";
  return named.href;
}

/** What is installed in a sandbox: its image where the backend names it, else what its system says of itself. */
export async function systemOf(
  { evidence, image }: Pick<Sandbox, "evidence" | "image">,
  read: () => Promise<string>,
): Promise<string> {
  const images = Object.entries(evidence).filter(([fact]) => fact.endsWith(".image"));
  return JSON.stringify([images, image?.searchPath, images.length > 0 ? "" : await read()]);
}

/** What a sandbox says of its system: distribution, architecture, Node.js. */
const script =
  "cat /etc/os-release /etc/debian_version /etc/alpine-release 2>/dev/null; uname -m; node --version";
const maxCharacters = 8_000;

/** @throws SandboxFailed where no program starts; the signal's reason */
export async function readSystem(sandbox: Sandbox, signal: AbortSignal): Promise<string> {
  const { code, stdout } = await runScript(sandbox, script, [], { maxCharacters, signal });
  if (code !== 0)
    throw new SandboxFailed("The sandbox couldn't say what it has installed: it needs node and /bin/sh.", {
      concerns: "session",
    });
  return stdout;
}
