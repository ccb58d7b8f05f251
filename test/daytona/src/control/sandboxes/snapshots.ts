import { createHash, randomUUID } from "node:crypto";
import { type SnapshotDto, SnapshotState } from "@daytona/api-client";
import { ApiError, badRequest } from "../../http/api-error.js";
import { type ResolvedOptions, type ResolvedSnapshot, snapshot } from "../../options.js";
import type { CreateRequest } from "./create-request.js";
import type { Sandbox } from "./sandbox.js";

export const defaultSnapshot = "daytona-small";

/** One of the organisation. */
export interface StoredSnapshot {
  readonly id: string;
  readonly name: string;
  readonly image: ResolvedSnapshot;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  /** Whose files it has. Undefined: of an image. */
  readonly sandboxId: string | undefined;
  state: SnapshotState;
}

/** The organisation's snapshots. */
export class Snapshots {
  readonly #snapshots = new Map<string, StoredSnapshot>();

  constructor(private readonly options: ResolvedOptions) {
    const given = { [defaultSnapshot]: snapshot.parse({ user: "daytona" }), ...options.snapshots };
    for (const [name, image] of Object.entries(given)) {
      const fixed = { createdAt: Date.parse("2026-01-01T00:00:00.000Z"), state: SnapshotState.ACTIVE };
      this.#snapshots.set(name, { id: idOf(name), name, image, sandboxId: undefined, ...fixed });
    }
  }

  all(): readonly StoredSnapshot[] {
    return [...this.#snapshots.values()];
  }

  get(idOrName: string): StoredSnapshot {
    const found = this.all().find(({ id, name }) => id === idOrName || name === idOrName);
    if (found === undefined) throw new ApiError(404, `Snapshot with ID or name ${idOrName} not found`);
    return found;
  }

  has(name: string): boolean {
    return this.#snapshots.has(name);
  }

  /** One with a sandbox's files and size. */
  add(id: string, name: string, { id: sandboxId, image, cpu, memory, disk }: Sandbox): void {
    if (this.has(name))
      throw new ApiError(409, `Snapshot with name "${name}" already exists for this organization`);
    const sized = { ...image, cpu, memory, disk };
    const state = SnapshotState.ACTIVE;
    this.#snapshots.set(name, { id, name, image: sized, createdAt: Date.now(), sandboxId, state });
  }

  delete({ name }: StoredSnapshot): void {
    this.#snapshots.delete(name);
  }

  /** The source and resources of a new sandbox. Throws the API's error for an invalid request. */
  chosenFor(request: CreateRequest) {
    const { buildInfo, cpu, memory, disk } = request;
    if (buildInfo) {
      if (request.snapshot !== undefined)
        throw badRequest("Cannot specify a snapshot when using a build info entry");
      const { image, organization } = this.options;
      const resources = { cpu: cpu ?? image.cpu, memory: memory ?? image.memory, disk: disk ?? image.disk };
      const max = { cpu: organization.maxCpu, memory: organization.maxMemory, disk: organization.maxDisk };
      for (const kind of ["cpu", "memory", "disk"] as const)
        if (resources[kind] > max[kind])
          throw new ApiError(
            403,
            `${kind} request ${resources[kind]} exceeds maximum allowed per sandbox (${max[kind]})`,
          );
      return { image, from: undefined, snapshot: undefined, ...resources };
    }
    if (cpu !== undefined || memory !== undefined || disk !== undefined)
      throw badRequest("Cannot specify Sandbox resources when using a snapshot");
    const asked = request.snapshot ?? defaultSnapshot;
    const found = this.all().find(({ id, name }) => id === asked || name === asked);
    if (found === undefined)
      throw badRequest(`Snapshot ${asked} not found. Did you add it through the Daytona Dashboard?`);
    if (found.state !== SnapshotState.ACTIVE) throw badRequest(`Snapshot ${asked} is ${found.state}`);
    const { image, id, name, sandboxId } = found;
    const from = sandboxId === undefined ? undefined : id;
    return { image, from, snapshot: name, cpu: image.cpu, memory: image.memory, disk: image.disk };
  }
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

export const newSnapshotId = () => randomUUID();

type Time = "createdAt" | "updatedAt" | "lastUsedAt";

/** In its wire format, where times are strings. */
export function snapshotDto({
  id,
  name,
  image: { cpu, memory, disk },
  createdAt,
  state,
  sandboxId,
}: StoredSnapshot): Omit<SnapshotDto, Time> & Record<Time, string | null> {
  const time = new Date(createdAt).toISOString();
  return {
    id,
    general: name === defaultSnapshot,
    name,
    imageName: sandboxId === undefined ? `loopback/${name}` : "",
    state,
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
    sourceSandboxId: sandboxId ?? null,
  };
}
