import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { messageOf, SandboxFailed, unlessAborted } from "@ambit/core/plugin";
import type { CredentialBroker } from "../credentials/broker.js";
import { trustedBy } from "../credentials/upstream.js";
import { addressesOfThisHost, type Lookup } from "../guarded-lookup.js";
import {
  type ClientOptions,
  directHosts,
  prepareClients,
  reportsTo,
  type SessionEgress,
  type SessionProxyOptions,
} from "../proxy/session.js";
import {
  type FromGate,
  fromGateSchema,
  fromRelaySchema,
  lineOf,
  MessageReader,
  maxMessageBytes,
  type Question,
  type RelaySettings,
  sentCredentials,
  type ToGate,
} from "./messages.js";

/** A pipe to the gate's program, which has been given the program: such as a bridge's `BinaryPipe`. */
export interface GatePipe {
  readonly output: ReadableStream<Uint8Array>;
  /** At most 128 KiB. Rejects if they may not have arrived. */
  write(bytes: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

export interface RemoteGateOptions {
  readonly pipe: GatePipe;
  /** At which the gate listens. */
  readonly port: number;
  readonly secret: Buffer;
  /** Milliseconds without a word after which each end gives the other up. */
  readonly silenceMs: number;
  readonly signal: AbortSignal;
  /** Called once if it is lost before it is closed: from then on the sandbox has no network. */
  onLost(failure: SandboxFailed): void;
}

export interface ServeOptions {
  readonly spec: SessionProxyOptions["spec"];
  readonly lookup: Lookup | undefined;
  readonly credentials: CredentialBroker | undefined;
}

const pieceBytes = 128 * 1024;
/** The oldest version of Node that the proxy runs on. */
const minNode = 22;
/** Questions at once: each connection has one. */
const maxQuestions = 2_048;

/**
 * The runner's end of a session's gate: tells it what it may do, answers its questions, and passes on what it reports. The
 * gate decides by the same code as the proxy on the runner.
 */
export class RemoteGate {
  readonly #options: RemoteGateOptions;
  readonly #listening = Promise.withResolvers<void>();
  readonly #serving = Promise.withResolvers<void>();
  readonly #timer: NodeJS.Timeout;
  #heardAt = performance.now();
  #served: ServeOptions | undefined;
  #sent: CredentialBroker["state"] | undefined;
  #writing: Promise<void> = Promise.resolve();
  #questions = 0;
  /** Where others reach the gate, according to itself. */
  addresses: readonly string[] = [];
  #hasEnded = false;

  private constructor(options: RemoteGateOptions) {
    this.#options = options;
    for (const { promise } of [this.#listening, this.#serving]) promise.catch(() => undefined);
    this.#timer = setInterval(() => this.#ping(), options.silenceMs / 4).unref();
  }

  /** Resolves when the gate listens; it admits nothing yet. @throws SandboxFailed, the signal's reason */
  static async begin(options: RemoteGateOptions): Promise<RemoteGate> {
    const gate = new RemoteGate(options);
    void gate.#read();
    const { secret, port, silenceMs } = options;
    gate.#send({ begin: { secret: secret.toString("hex"), port, silenceMs } });
    try {
      await unlessAborted(options.signal, () => gate.#listening.promise);
      return gate;
    } catch (error) {
      await gate.close().catch(() => undefined);
      throw error;
    }
  }

  /** Gives it to a session, once. Resolves when connections are admitted. @throws as `begin` */
  async serve(served: ServeOptions): Promise<void> {
    const { spec, lookup, credentials } = served;
    this.#served = served;
    this.#sent = credentials?.state;
    this.#send({
      serve: {
        policy: spec.boundary.network,
        hasLookup: lookup !== undefined,
        runnerAddresses: addressesOfThisHost(),
        upstreamProxy: spec.upstreamProxy,
        ...(credentials === undefined
          ? {}
          : {
              credentials: { ...sentCredentials(credentials.state), trusted: trustedBy(credentials.trust) },
            }),
      },
    });
    await unlessAborted(this.#options.signal, () => this.#serving.promise);
  }

  /** Ends the gate's program and all of its connections. Safe to call twice. */
  async close(): Promise<void> {
    this.#end(new SandboxFailed("The gate is closed"));
    await this.#options.pipe.close();
  }

  async #read(): Promise<void> {
    const reader = new MessageReader(maxMessageBytes, (message) =>
      this.#receive(fromGateSchema.parse(message)),
    );
    try {
      for await (const bytes of this.#options.pipe.output) {
        if (this.#hasEnded) return;
        this.#heardAt = performance.now();
        reader.push(bytes);
      }
      this.#lose("its program ended");
    } catch (error) {
      this.#lose(messageOf(error));
    }
  }

  #receive(message: FromGate): void {
    if ("decision" in message) this.#reports?.onDecision(message.decision);
    else if ("ask" in message) void this.#answer(message.ask, message.question);
    else if ("listening" in message) this.#begun(message.listening);
    else if ("serving" in message) this.#serving.resolve();
    else if ("fault" in message) this.#reports?.onFault(message.fault);
    else if ("ended" in message) this.#lose(message.ended);
  }

  get #reports() {
    return this.#served && reportsTo(this.#served.spec);
  }

  #begun({ node, addresses }: Extract<FromGate, { listening: object }>["listening"]): void {
    this.addresses = addresses;
    if (Number.parseInt(node, 10) >= minNode) this.#listening.resolve();
    else
      this.#lose(
        `the image has Node.js ${node}, and the gate needs ${minNode} or newer: use a newer image, or egress "bridge"`,
      );
  }

  async #answer(ask: number, question: Question): Promise<void> {
    this.#questions += 1;
    if (this.#questions > maxQuestions) {
      this.#lose("it asks too much at once");
      return;
    }
    const answer = await this.#valueFor(question).then(
      (value) => ({ answer: ask, value }),
      (error: unknown) => ({ answer: ask, failure: messageOf(error) }),
    );
    this.#questions -= 1;
    this.#sendNewValues();
    this.#send(answer);
  }

  async #valueFor(question: Question): Promise<unknown> {
    const { spec, lookup, credentials } = this.#served ?? {};
    if (spec === undefined) throw new Error("the gate has no session yet");
    if ("isUnclaimed" in question) return reportsTo(spec).isUnclaimed();
    if ("lookup" in question) return await lookup?.(question.lookup);
    if ("ready" in question) return (await credentials?.ready(question.ready)) ?? null;
    const isHost = credentials?.credentials.some(({ endpoints }) =>
      [...endpoints].some((endpoint) => endpoint.startsWith(`${question.certificate}:`)),
    );
    if (isHost !== true) throw new Error(`${question.certificate} is no host of a credential`);
    return await credentials?.certificateFor(question.certificate);
  }

  /** Before an answer that may rest on them. */
  #sendNewValues(): void {
    const state = this.#served?.credentials?.state;
    if (state === undefined || state === this.#sent) return;
    this.#sent = state;
    this.#send({ credentials: sentCredentials(state) });
  }

  #ping(): void {
    const { silenceMs } = this.#options;
    if (performance.now() - this.#heardAt > silenceMs) this.#lose(`it said nothing for ${silenceMs} ms`);
    else this.#send({ ping: true });
  }

  #send(message: ToGate): void {
    if (this.#hasEnded) return;
    const line = lineOf(message);
    this.#writing = this.#writing
      .then(async () => {
        for (let start = 0; start < line.length && !this.#hasEnded; start += pieceBytes)
          await this.#options.pipe.write(line.subarray(start, start + pieceBytes));
      })
      .catch((error: unknown) => this.#lose(messageOf(error)));
  }

  #lose(why: string): void {
    const failure = new SandboxFailed(`The gate can't be used: ${why.slice(0, 500)}`);
    if (!this.#end(failure)) return;
    this.#options.onLost(failure);
    this.#options.pipe.close().catch(() => undefined);
  }

  /** @returns whether it hadn't ended before. */
  #end(failure: SandboxFailed): boolean {
    if (this.#hasEnded) return false;
    this.#hasEnded = true;
    clearInterval(this.#timer);
    this.#listening.reject(failure);
    this.#serving.reject(failure);
    return true;
  }
}

export interface RemoteEgressOptions extends ClientOptions {
  /** Such as the bridge's `RemoteSandbox`: leads a port of its loopback to a Unix socket inside. */
  readonly sandbox: { forward(path: string): Promise<number> };
  /** What the sandbox's platform made of a gate and a relay. Closed with the egress. */
  readonly gate: {
    /** Of the relay's Unix socket. */
    readonly path: string;
    serve(served: ServeOptions): Promise<void>;
    close(): Promise<void>;
  };
  readonly lookup: Lookup | undefined;
}

/**
 * The only way out of a sandbox: a gate in a process elsewhere. What the runner itself serves inside, such as tools, isn't
 * behind it: programs reach that directly.
 *
 * @throws SandboxFailed
 */
export async function openRemoteEgress(options: RemoteEgressOptions): Promise<SessionEgress> {
  const { sandbox, gate, spec, broker, lookup } = options;
  const [environmentAt, port] = await Promise.all([
    prepareClients(options),
    sandbox.forward(gate.path),
    gate.serve({ spec, lookup, credentials: broker }),
  ]);
  // A listed loopback address would be one of the gate, which has nothing there.
  return {
    environment: environmentAt(port, directHosts({ mode: "off", rules: [] })),
    close: () => gate.close(),
  };
}

export interface RelayOptions {
  /** To the relay's program, which it has been given. */
  readonly pipe: GatePipe;
  readonly settings: Omit<RelaySettings, "secret"> & { readonly secret: Buffer };
  readonly signal: AbortSignal;
  /** Called once if it is lost before it is closed. */
  onLost(failure: SandboxFailed): void;
}

export interface StartedRelay {
  /** Milliseconds after which the gate was reached. */
  readonly afterMs: number;
  close(): Promise<void>;
}

/** For the relay's program to start, and for its last attempt, in milliseconds. */
const startMs = 30_000;

/** Resolves when the relay serves its socket, and has reached the gate. @throws SandboxFailed, the signal's reason */
export async function openRelay({ pipe, settings, signal, onLost }: RelayOptions): Promise<StartedRelay> {
  const { promise, resolve, reject } = Promise.withResolvers<StartedRelay>();
  promise.catch(() => undefined);
  let [isOpen, isClosed, heardAt] = [false, false, performance.now()];
  const write = (message: object) =>
    void pipe.write(lineOf(message)).catch((error: unknown) => lose(messageOf(error)));
  const close = async () => {
    isClosed = true;
    clearTimeout(late);
    clearInterval(pings);
    signal.removeEventListener("abort", stop);
    await pipe.close();
  };
  const lose = (why: string) => {
    const failure = new SandboxFailed(`The sandbox doesn't reach its gate: ${why.slice(0, 500)}`);
    reject(failure);
    if (isOpen && !isClosed) onLost(failure);
    void close().catch(() => undefined);
  };
  const stop = () => {
    reject(signal.reason);
    void close().catch(() => undefined);
  };
  const reader = new MessageReader(maxMessageBytes, (message) => {
    const said = fromRelaySchema.parse(message);
    if ("pong" in said) return;
    if ("failed" in said) return lose(said.failed);
    isOpen = true;
    clearTimeout(late);
    signal.removeEventListener("abort", stop);
    resolve({ afterMs: said.ready.afterMs, close });
  });
  const read = async () => {
    try {
      for await (const bytes of pipe.output) {
        heardAt = performance.now();
        reader.push(bytes);
      }
      lose("the relay's program ended");
    } catch (error) {
      lose(messageOf(error));
    }
  };
  const { secret, settleMs, silenceMs } = settings;
  const late = setTimeout(() => lose("it says nothing"), settleMs + startMs);
  // Also so that nothing between takes the stream for an idle one.
  const pings = setInterval(() => {
    if (performance.now() - heardAt > silenceMs) lose(`the relay said nothing for ${silenceMs} ms`);
    else write({ ping: true });
  }, silenceMs / 4).unref();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  void read();
  write({ ...settings, secret: secret.toString("hex") });
  return await promise;
}

const read = new Map<string, Promise<Buffer>>();

function program(name: "gate" | "relay"): Promise<Buffer> {
  const existing = read.get(name);
  if (existing !== undefined) return existing;
  const path = fileURLToPath(new URL(`../${name}.cjs`, import.meta.url));
  const text = readFile(path).catch((error: unknown) => {
    read.delete(name);
    throw new SandboxFailed(`The program of a ${name} isn't built: run \`npm run build\``, { cause: error });
  });
  read.set(name, text);
  return text;
}

/** The gate as one CommonJS file, for Node.js 22 or newer. Read once. @throws SandboxFailed when it wasn't bundled */
export const gateProgram = () => program("gate");
/** The relay, for Node.js 18 or newer. Read once. @throws as `gateProgram` */
export const relayProgram = () => program("relay");
