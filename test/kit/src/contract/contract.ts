import { commandOf, type Finished, type ProgramOptions, runCommand, searchPath } from "@ambit/attacks";
import type { Boundary, Capability, Finding, Sandbox, SandboxBackend, SandboxSpec } from "@ambit/core/plugin";
import { KitScope, silentLog } from "../stage/kit-scope.js";
import { freshId } from "../stage/stage.js";

/** A requirement on every backend, whatever it enforces. Throws what an assertion throws. */
export interface ContractCheck {
  readonly title: string;
  check(contract: Contract): Promise<void>;
}

/** How sandboxes are opened while the contract is checked. */
export interface SessionShape {
  readonly name: string;
  readonly boundary: Boundary;
  readonly required: readonly Capability[];
}

const nothing: Boundary = {
  network: { mode: "on", rules: [] },
  filesystem: { mode: "on", readable: [], writable: [], denied: [] },
  resources: {},
  secrets: "visible",
  enforcement: "strict",
};

/** Without a boundary, and with the tightest one that has a workspace and is proven here. */
export function shapesOf(findings: readonly Finding[]): readonly SessionShape[] {
  const isProven = (capability: Capability) =>
    findings.some((finding) => finding.capability === capability && finding.proven);
  const network = isProven("network.deny");
  const filesystem = isProven("filesystem.workspace-only") && isProven("filesystem.host-hidden");
  const open: SessionShape = { name: "without a boundary", boundary: nothing, required: [] };
  if (!network && !filesystem) return [open];
  const wanted: readonly Capability[] = [
    ...(network ? (["network.deny"] as const) : []),
    ...(filesystem ? (["filesystem.workspace-only", "filesystem.host-hidden"] as const) : []),
    "process.contained",
    "environment.named-only",
    "environment.per-tool",
  ];
  const tight: SessionShape = {
    name: "within a boundary",
    boundary: {
      ...nothing,
      ...(network ? { network: { mode: "off", rules: [] } } : {}),
      ...(filesystem ? { filesystem: { mode: "workspace", readable: [], writable: [], denied: [] } } : {}),
    },
    required: wanted.filter(isProven),
  };
  return [open, tight];
}

/** One sandbox for all checks of a shape that leave nothing in it that affects others. */
export class SharedSandbox {
  #contract: Contract | undefined;
  #opened: Promise<Sandbox> | undefined;

  constructor(
    readonly backend: SandboxBackend,
    readonly shape: SessionShape,
  ) {}

  open(): Promise<Sandbox> {
    this.#contract ??= new Contract(this.backend, this.shape);
    this.#opened ??= this.#contract.open();
    return this.#opened;
  }

  /** Closes it after the last check, and after a failed one, so that the next one has a fresh sandbox. */
  async close(): Promise<void> {
    const contract = this.#contract;
    this.#contract = undefined;
    this.#opened = undefined;
    await contract?.close();
  }
}

/** One check's own sandboxes, all closed with it. */
export class Contract {
  readonly #scope = new KitScope();
  readonly #shared: SharedSandbox | undefined;

  /** @param shared the shared sandbox. Default: a separate one for the check. */
  constructor(
    readonly backend: SandboxBackend,
    readonly shape: SessionShape,
    shared?: SharedSandbox,
  ) {
    this.#shared = shared;
  }

  /** A sandbox that other checks use too, for checks that need neither an empty one nor its end. */
  shared(): Promise<Sandbox> {
    return this.#shared?.open() ?? this.open();
  }

  async open(overrides: Partial<SandboxSpec> = {}): Promise<Sandbox> {
    const { boundary, required } = this.shape;
    const spec: SandboxSpec = {
      id: freshId(),
      boundary,
      required,
      requiredPaths: [],
      onDecision: () => undefined,
      log: silentLog,
      ...overrides,
    };
    const sandbox = await this.backend.open(spec, this.#scope);
    this.#scope.defer(() => sandbox.close());
    return sandbox;
  }

  close(): Promise<void> {
    return this.#scope.close();
  }
}

/** A line of shell inside, to its end. */
export function shell(sandbox: Sandbox, line: string, options: ProgramOptions = {}): Promise<Finished> {
  const { env = {}, ...rest } = options;
  return runCommand(sandbox, { argv: ["/bin/sh", "-c", line], env: { PATH: searchPath, ...env }, ...rest });
}

/** A line of Python inside, to its end, with the kit's preamble. */
export function script(sandbox: Sandbox, body: string, parameters: object = {}): Promise<Finished> {
  return runCommand(sandbox, commandOf(body, parameters));
}
