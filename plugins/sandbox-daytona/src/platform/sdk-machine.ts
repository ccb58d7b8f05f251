import type { Sandbox } from "@daytona/sdk";
import type { ListedMachine, Machine, MachineView, NetworkChange } from "./service.js";

/** Converts the SDK's errors into `ServiceFailure`. */
export type Guard = <Result>(call: () => Promise<Result>) => Promise<Result>;

export class SdkMachine implements Machine {
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

export function listedMachine(sandbox: Sandbox, guard: Guard): ListedMachine {
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
