import { SandboxFailed } from "@ambit/core/plugin";
import type {
  CreateSandboxFromImageParams,
  CreateSandboxFromSnapshotParams,
  Daytona,
  Sandbox,
  Secret,
  Snapshot,
} from "@daytona/sdk";
import { ServiceFailure, serviceFailure } from "./failure.js";
import type {
  ListedMachine,
  Machine,
  MachineView,
  NetworkChange,
  SandboxOrder,
  SecretOrder,
  Service,
  StoredSecret,
  StoredSnapshot,
} from "./service.js";

/** Converts the SDK's errors into `ServiceFailure`. */
type Guard = <Result>(call: () => Promise<Result>) => Promise<Result>;

class SdkMachine implements Machine {
  constructor(
    readonly sandbox: Sandbox,
    readonly guard: Guard,
  ) {}

  get id(): string {
    return this.sandbox.id;
  }

  get name(): string {
    return this.sandbox.name;
  }

  get labels(): Readonly<Record<string, string>> {
    return this.sandbox.labels;
  }

  get toolboxUrl(): string {
    return `${this.sandbox.toolboxProxyUrl.replace(/\/$/, "")}/${this.sandbox.id}`;
  }

  refresh(): Promise<MachineView> {
    return this.guard(async () => {
      await this.sandbox.refreshData();
      return viewOf(this.sandbox);
    });
  }

  setLabels(labels: Readonly<Record<string, string>>): Promise<void> {
    return this.guard(async () => {
      await this.sandbox.setLabels({ ...labels });
    });
  }

  waitUntilStarted(timeoutMs: number): Promise<void> {
    return this.guard(() => this.sandbox.waitUntilStarted(timeoutMs / 1_000));
  }

  touch(): Promise<void> {
    return this.guard(() => this.sandbox.refreshActivity());
  }

  setNetwork(settings: NetworkChange): Promise<void> {
    return this.guard(() => this.sandbox.updateNetworkSettings({ ...settings }));
  }

  execute(line: string, timeoutMs: number): Promise<{ exitCode: number; output: string }> {
    return this.guard(async () => {
      const seconds = Math.ceil(timeoutMs / 1_000);
      const { exitCode, result } = await this.sandbox.process.executeCommand(
        line,
        undefined,
        undefined,
        seconds,
      );
      return { exitCode, output: result };
    });
  }

  startSession(id: string): Promise<void> {
    return this.guard(() => this.sandbox.process.createSession(id));
  }

  startInSession(session: string, line: string): Promise<string> {
    return this.guard(async () => {
      const order = { command: line, runAsync: true, suppressInputEcho: true };
      return (await this.sandbox.process.executeSessionCommand(session, order)).cmdId;
    });
  }

  input(session: string, command: string, text: string): Promise<void> {
    return this.guard(() => this.sandbox.process.sendSessionCommandInput(session, command, text));
  }

  endSession(session: string): Promise<void> {
    return this.guard(() => this.sandbox.process.deleteSession(session));
  }

  upload(path: string, content: Uint8Array, signal: AbortSignal): Promise<void> {
    // The SDK would send any other array byte by byte.
    const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
    return this.guard(() => this.sandbox.fs.uploadFileStream(bytes, path, { signal }));
  }

  makeSnapshot(name: string, timeoutMs: number): Promise<void> {
    return this.guard(() => this.sandbox.createSnapshot(name, timeoutMs / 1_000));
  }

  delete(): Promise<void> {
    return this.guard(() => this.sandbox.delete());
  }
}

function listedMachine(sandbox: Sandbox, guard: Guard): ListedMachine {
  const { id, name, labels } = sandbox;
  return { id, name, labels, delete: () => guard(() => sandbox.delete()) };
}

function viewOf(sandbox: Sandbox): MachineView {
  return {
    state: sandbox.state ?? "unknown",
    errorReason: sandbox.errorReason,
    labels: sandbox.labels,
    env: sandbox.env ?? {},
    isPublic: sandbox.public,
    networkBlockAll: sandbox.networkBlockAll ?? false,
    networkAllowList: entriesOf(sandbox.networkAllowList),
    domainAllowList: entriesOf(sandbox.domainAllowList),
    cpu: sandbox.cpu,
    memory: sandbox.memory,
    disk: sandbox.disk,
    autoStopMinutes: sandbox.autoStopInterval,
    autoDeleteMinutes: sandbox.autoDeleteInterval,
    hasTimeToLive: Boolean(sandbox.autoDestroyAt),
    supervisor: `Daytona's daemon ${sandbox.daemonVersion ?? "of an unknown version"}`,
  };
}

function entriesOf(list: string | null | undefined): readonly string[] {
  return (list ?? "")
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");
}

interface ServiceSettings {
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
