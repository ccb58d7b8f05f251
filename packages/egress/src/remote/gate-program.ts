import { createServer, type Server, Socket } from "node:net";
import { createSecureContext, createServer as createTlsServer, type SecureContext } from "node:tls";
import type { BoundCredential } from "../credentials/bound.js";
import { HeldCredentials, type ProxyCredentials, type ServerTrust } from "../credentials/values.js";
import { addressesOfThisHost } from "../guarded-lookup.js";
import { type EgressProxy, openEgressProxy } from "../proxy/proxy.js";
import type { Replacements } from "../replacements.js";
import type { Target } from "../target.js";
import {
  answers,
  type FromGate,
  gateTls,
  lineOf,
  MessageReader,
  maxToGateBytes,
  type Question,
  receivedCredentials,
  type SentCredentials,
  type Served,
  type ToGate,
} from "./messages.js";

/** A gate's copy of the session's credentials, in memory only. New values and certificates are the runner's. */
class RemoteCredentials implements ProxyCredentials {
  readonly trust: ServerTrust;
  readonly #held: HeldCredentials;
  readonly #ask: (question: Question) => Promise<unknown>;
  readonly #contexts = new Map<string, Promise<SecureContext>>();

  constructor(
    { trusted, ...sent }: NonNullable<Served["credentials"]>,
    ask: (question: Question) => Promise<unknown>,
  ) {
    this.trust = { trusted };
    this.#held = new HeldCredentials(receivedCredentials(sent));
    this.#ask = ask;
  }

  /** New values. */
  receive(sent: SentCredentials): void {
    this.#held.state = receivedCredentials(sent);
  }

  get credentials(): readonly BoundCredential[] {
    return this.#held.credentials;
  }

  credentialsFor(target: Target): readonly BoundCredential[] {
    return this.#held.credentialsFor(target);
  }

  replacementsFor(target: Target): Replacements {
    return this.#held.replacementsFor(target);
  }

  async ready(names: readonly string[]): Promise<string | undefined> {
    const expire = this.credentials.filter(
      ({ name, refresh }) => refresh !== undefined && names.includes(name),
    );
    if (expire.length === 0) return undefined;
    // A new value arrives before the answer.
    return answers.ready.parse(await this.#ask({ ready: expire.map(({ name }) => name) })) ?? undefined;
  }

  contextFor(name: string): Promise<SecureContext> {
    const existing = this.#contexts.get(name);
    if (existing !== undefined) return existing;
    const made = this.#makeContext(name);
    this.#contexts.set(name, made);
    made.catch(() => this.#contexts.delete(name));
    return made;
  }

  async #makeContext(name: string): Promise<SecureContext> {
    const { key, certificate } = answers.certificate.parse(await this.#ask({ certificate: name }));
    return createSecureContext({ key, cert: certificate, minVersion: "TLSv1.2" });
  }
}

/** A client that hasn't finished its handshake after so many milliseconds is cut. */
const handshakeMs = 10_000;
/** Connections at once, including those that don't know the secret: more than the proxy serves. */
const maxConnections = 1_024;
/** A fault's message is cut to so many characters. */
const maxFaultCharacters = 1_000;
/** Milliseconds between the message that says why the program ends, and its end: the message has to leave. */
const farewellMs = 100;

interface GateProgramOptions {
  /** Sends to the runner. Throws if it doesn't take more: no connection without a record. */
  readonly say: (line: Buffer) => void;
  /** Ends this process, and with it every connection. */
  readonly end: () => void;
}

/**
 * The filtering proxy of one session, in a process of its own that its runner controls. It keeps nothing: when the runner is
 * silent or gone, it ends.
 */
class GateProgram {
  readonly #options: GateProgramOptions;
  readonly #reader: MessageReader;
  readonly #questions = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  #asked = 0;
  #silence: NodeJS.Timeout | undefined;
  /** The proxy's, which doesn't listen itself. */
  readonly #inner: Server = createServer({ allowHalfOpen: true });
  #proxy: Promise<EgressProxy> | undefined;
  #credentials: RemoteCredentials | undefined;

  constructor(options: GateProgramOptions) {
    this.#options = options;
    // The types are the runner's, which this program came with.
    this.#reader = new MessageReader(maxToGateBytes, (message) => this.#receive(message as ToGate));
  }

  /** Bytes of the runner. Ends the program for any that aren't understood. */
  push(bytes: Uint8Array): void {
    try {
      this.#silence?.refresh();
      this.#reader.push(bytes);
    } catch (error) {
      this.#fail(error);
    }
  }

  #receive(message: ToGate): void {
    if ("ping" in message) this.#say({ pong: true });
    else if ("answer" in message) this.#answered(message);
    else if ("credentials" in message) this.#credentials?.receive(message.credentials);
    else if ("begin" in message) this.#begin(message.begin);
    else this.#serve(message.serve);
  }

  #begin({ secret, port: at, silenceMs }: Extract<ToGate, { begin: object }>["begin"]): void {
    if (this.#silence !== undefined) throw new Error("it has begun already");
    this.#silence = setTimeout(() => this.#options.end(), silenceMs);
    const server = createTlsServer({ ...gateTls(Buffer.from(secret, "hex")), handshakeTimeout: handshakeMs });
    server.maxConnections = maxConnections;
    server.on("tlsClientError", (_error, client) => client.destroy());
    server.on("secureConnection", (client) => {
      client.on("error", () => undefined);
      if (this.#proxy === undefined) client.destroy();
      else this.#inner.emit("connection", client);
    });
    server.on("error", (error) => this.#fail(error));
    server.listen(at, () => {
      const addresses = addressesOfThisHost().filter(isReachable);
      this.#say({ listening: { node: process.versions.node, addresses } });
    });
  }

  #serve({ policy, hasLookup, runnerAddresses, upstreamProxy, credentials }: Served): void {
    if (this.#proxy !== undefined) throw new Error("it serves a session already");
    this.#credentials =
      credentials === undefined
        ? undefined
        : new RemoteCredentials(credentials, (question) => this.#ask(question));
    this.#proxy = openEgressProxy({
      listen: { server: this.#inner },
      policy,
      upstreamProxy,
      isUnclaimed: async () => answers.isUnclaimed.parse(await this.#ask({ isUnclaimed: true })),
      ...(hasLookup
        ? { lookup: async (name) => answers.lookup.parse(await this.#ask({ lookup: name })) }
        : {}),
      hostAddresses: () => [...addressesOfThisHost(), ...runnerAddresses],
      ...(this.#credentials === undefined ? {} : { credentials: this.#credentials }),
      onDecision: (decision) => this.#say({ decision }),
      onFault: (fault) => this.#say({ fault: String(fault).slice(0, maxFaultCharacters) }),
    });
    this.#proxy.then(
      () => this.#say({ serving: true }),
      (error: unknown) => this.#fail(error),
    );
  }

  #ask(question: Question): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const ask = this.#asked;
      this.#asked += 1;
      this.#questions.set(ask, { resolve, reject });
      this.#say({ ask, question });
    });
  }

  #answered(message: Extract<ToGate, { answer: number }>): void {
    const question = this.#questions.get(message.answer);
    this.#questions.delete(message.answer);
    if ("failure" in message) question?.reject(new Error(message.failure));
    else question?.resolve(message.value);
  }

  #say(message: FromGate): void {
    this.#options.say(lineOf(message));
  }

  #fail(error: unknown): void {
    try {
      this.#say({ ended: String(error).slice(0, maxFaultCharacters) });
    } finally {
      setTimeout(() => this.#options.end(), farewellMs);
    }
  }
}

/** Not of the loopback, nor of a link alone. */
const isReachable = (address: string) => !/^(127\.|::1$|fe[89ab])/i.test(address);

/** Records that wait for the runner: while there are more, connections are refused. */
const maxWaitingBytes = 1024 * 1024;

// Not `process.stdout`, whose writes to a pipe are synchronous and block everything else.
const output = new Socket({ fd: 1, readable: false, writable: true });
const end = () => process.exit();
const program = new GateProgram({
  say: (line) => {
    if (output.writableLength > maxWaitingBytes)
      throw new Error("the runner takes no more records of connections");
    output.write(line);
  },
  end,
});
process.stdin.on("data", (bytes: Buffer) => program.push(bytes));
// The runner, or the way to it, is gone.
for (const event of ["end", "close", "error"]) process.stdin.once(event, end);
output.once("error", end);
