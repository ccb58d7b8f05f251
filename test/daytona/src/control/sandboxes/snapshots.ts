import { createHash } from "node:crypto";
import { type SnapshotDto, SnapshotState } from "@daytona/api-client";
import { ApiError, badRequest } from "../../http/api-error.js";
import { type ResolvedOptions, type ResolvedSnapshot, snapshot } from "../../options.js";
import type { CreateRequest } from "./create-request.js";

export const defaultSnapshot = "daytona-small";

export function snapshotsOf(options: ResolvedOptions): ReadonlyMap<string, ResolvedSnapshot> {
  return new Map([
    [defaultSnapshot, snapshot.parse({ user: "daytona" })],
    ...Object.entries(options.snapshots),
  ]);
}

/** The same id for a name at every start. */
const idOf = (name: string) => {
  const hex = createHash("sha256").update(name).digest("hex");
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join("-");
};

export function snapshotNamed(idOrName: string, options: ResolvedOptions): string {
  const name = [...snapshotsOf(options).keys()].find((each) => each === idOrName || idOf(each) === idOrName);
  if (name === undefined) throw new ApiError(404, `Snapshot with ID or name ${idOrName} not found`);
  return name;
}

type Time = "createdAt" | "updatedAt" | "lastUsedAt";

/** In its wire format, where times are strings. */
export function snapshotDto(
  name: string,
  { cpu, memory, disk }: ResolvedSnapshot,
): Omit<SnapshotDto, Time> & Record<Time, string | null> {
  const time = "2026-01-01T00:00:00.000Z";
  return {
    id: idOf(name),
    general: name === defaultSnapshot,
    name,
    imageName: `loopback/${name}`,
    state: SnapshotState.ACTIVE,
    size: 1,
    entrypoint: null,
    cpu,
    gpu: 0,
    mem: memory,
    disk,
    errorReason: null,
    createdAt: time,
    updatedAt: time,
    lastUsedAt: null,
    sourceSandboxId: null,
  };
}

/** The source and resources of a new sandbox. Throws the API's error for an invalid request. */
export function chooseImage(request: CreateRequest, options: ResolvedOptions) {
  const { buildInfo, cpu, memory, disk } = request;
  if (buildInfo) {
    if (request.snapshot !== undefined)
      throw badRequest("Cannot specify a snapshot when using a build info entry");
    const { image, organization } = options;
    const resources = { cpu: cpu ?? image.cpu, memory: memory ?? image.memory, disk: disk ?? image.disk };
    const max = { cpu: organization.maxCpu, memory: organization.maxMemory, disk: organization.maxDisk };
    for (const kind of ["cpu", "memory", "disk"] as const)
      if (resources[kind] > max[kind])
        throw new ApiError(
          403,
          `${kind} request ${resources[kind]} exceeds maximum allowed per sandbox (${max[kind]})`,
        );
    return { image, snapshot: undefined, ...resources };
  }
  if (cpu !== undefined || memory !== undefined || disk !== undefined)
    throw badRequest("Cannot specify Sandbox resources when using a snapshot");
  const name = request.snapshot ?? defaultSnapshot;
  const image = snapshotsOf(options).get(name);
  if (!image) throw badRequest(`Snapshot ${name} not found. Did you add it through the Daytona Dashboard?`);
  return { image, snapshot: name, cpu: image.cpu, memory: image.memory, disk: image.disk };
}
