import { SandboxFailed } from "@ambit/core/plugin";
import type {
  CreateSandboxFromImageParams,
  CreateSandboxFromSnapshotParams,
  Daytona,
  Secret,
  Snapshot,
} from "@daytona/sdk";
import { ServiceFailure, serviceFailure } from "./failure.js";
import { type Guard, listedMachine, SdkMachine } from "./sdk-machine.js";
import type {
  ListedMachine,
  Machine,
  SandboxOrder,
  SecretOrder,
  Service,
  StoredSecret,
  StoredSnapshot,
} from "./service.js";

export interface ServiceSettings {
  readonly apiKey: string;
  readonly apiUrl: string;
  readonly target: string;
  readonly requestTimeoutMs: number;
}

/** The official SDK. It is large, so it is loaded with the first sandbox or probe; a server starts without it. */
export async function openSdkService(settings: ServiceSettings): Promise<Service> {
  const sdk = await import("@daytona/sdk");
  const client = new sdk.Daytona({
    // All three, or it reads missing ones from the environment and from `.env` files in the working directory.
    apiKey: settings.apiKey,
    apiUrl: settings.apiUrl,
    target: settings.target,
    requestTimeoutMs: settings.requestTimeoutMs,
    // Its event stream would keep a socket open while there are sandboxes; states are polled instead.
    useDeprecatedPolling: true,
  });
  if (Reflect.get(client, "otelSdk") !== undefined) {
    await client[Symbol.asyncDispose]();
    throw new SandboxFailed(
      "Daytona: its SDK found DAYTONA_OTEL_ENABLED and would send telemetry: unset it, in .env files too",
    );
  }
  return new SdkService(client, async (call) => {
    try {
      return await call();
    } catch (error) {
      throw error instanceof sdk.DaytonaError ? serviceFailure(error, settings.apiKey) : error;
    }
  });
}

class SdkService implements Service {
  readonly #client: Daytona;
  readonly #guard: Guard;

  constructor(client: Daytona, guard: Guard) {
    this.#client = client;
    this.#guard = guard;
  }

  create(order: SandboxOrder, timeoutMs: number): Promise<Machine> {
    return this.#guard(async () => {
      const sandbox = await this.#client.create(parametersOf(order), { timeout: timeoutMs / 1_000 });
      return new SdkMachine(sandbox, this.#guard);
    });
  }

  get(idOrName: string): Promise<Machine> {
    return this.#guard(async () => new SdkMachine(await this.#client.get(idOrName), this.#guard));
  }

  async *list(labels: Readonly<Record<string, string>>): AsyncIterable<ListedMachine> {
    const sandboxes = this.#client.list({ labels: { ...labels }, limit: 200 })[Symbol.asyncIterator]();
    for (;;) {
      const { done, value } = await this.#guard(() => sandboxes.next());
      if (done === true) return;
      yield listedMachine(value, this.#guard);
    }
  }

  createSecret({ hosts, ...secret }: SecretOrder): Promise<StoredSecret> {
    if (hosts.length === 0) throw new TypeError("A secret without hosts could be sent anywhere");
    return this.#guard(async () =>
      storedSecret(await this.#client.secret.create({ ...secret, hosts: [...hosts] })),
    );
  }

  async *listSecrets(prefix: string): AsyncIterable<StoredSecret> {
    let cursor: string | undefined;
    do {
      const query = { name: prefix, limit: 200, ...(cursor === undefined ? {} : { cursor }) };
      const page = await this.#guard(() => this.#client.secret.list(query));
      // The platform's filter matches anywhere in the name.
      yield* page.items.map(storedSecret).filter(({ name }) => name.startsWith(prefix));
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  deleteSecret(id: string): Promise<void> {
    return this.#guard(() => this.#client.secret.delete(id));
  }

  async snapshot(idOrName: string): Promise<StoredSnapshot | undefined> {
    try {
      return storedSnapshot(await this.#guard(() => this.#client.snapshot.get(idOrName)));
    } catch (error) {
      if (error instanceof ServiceFailure && error.kind === "missing") return undefined;
      throw error;
    }
  }

  async *listSnapshots(prefix: string): AsyncIterable<StoredSnapshot> {
    for (let page = 1; page <= maxSnapshotPages; page += 1) {
      const { items, totalPages } = await this.#guard(() => this.#client.snapshot.list({ page, limit: 100 }));
      yield* items.filter(({ name }) => name.startsWith(prefix)).map(storedSnapshot);
      if (page >= totalPages) return;
    }
  }

  deleteSnapshot(id: string): Promise<void> {
    return this.#guard(() => this.#client.snapshot.delete(id));
  }
}

/** Of 100 snapshots each. */
const maxSnapshotPages = 100;

type Parameters = CreateSandboxFromSnapshotParams | CreateSandboxFromImageParams;

function parametersOf({
  source,
  resources,
  network,
  labels,
  env,
  secrets,
  ...order
}: SandboxOrder): Parameters {
  return {
    name: order.name,
    ...("image" in source ? { image: source.image, resources: { ...resources } } : source),
    language: "javascript",
    ...network,
    // The SDK adds its own header to the object that it is given.
    labels: { ...labels },
    envVars: { ...env },
    ...(Object.keys(secrets).length === 0 ? {} : { secrets: { ...secrets } }),
    public: false,
    autoStopInterval: order.autoStopMinutes,
    ephemeral: true,
    ttlMinutes: order.ttlMinutes,
  };
}

function storedSecret({ id, name, description, placeholder, hosts }: Secret): StoredSecret {
  return { id, name, description: description ?? "", placeholder, hosts };
}

function storedSnapshot({ id, name, state, errorReason, createdAt }: Snapshot): StoredSnapshot {
  // The SDK's types call it a Date, and it has the text.
  return { id, name, state, errorReason: errorReason ?? undefined, createdAt: new Date(createdAt).getTime() };
}
