import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  codeOf,
  type NetworkBoundary,
  type ProxyEndpoint,
  type UpstreamProxy,
  unlessAborted,
} from "@ambit/core/plugin";
import { isResolvedByProxy, openTunnel, ProxyFailed, proxyFor } from "../client/upstream-proxy.js";
import {
  type AdmittedDestination,
  decideBeforeLookup,
  decideConnection,
  type EgressProtocol,
  type NetworkDecision,
} from "../decide.js";
import type { Lookup } from "../guarded-lookup.js";
import type { Target } from "../target.js";
import type { EgressLimits } from "./clients.js";
import { readHttpDestination } from "./http/destination.js";
import { judgeFirstFlight } from "./tunnel/first-flight.js";

/** One connection attempt, with its decision. */
export interface EgressDecision {
  /** Canonical, or if the client's spelling couldn't be parsed, escaped and cut to 255 characters. */
  readonly target: { readonly host: string; readonly port: number };
  readonly allowed: boolean;
  readonly reason: string;
  readonly protocol: EgressProtocol;
  /** The address that was connected to, or tried first; absent if nothing was resolved. */
  readonly address?: string;
  /** Why an allowed connection failed: a sentence of at most 300 characters. Absent: it didn't, as far as is known. */
  readonly failure?: string;
  /** Whether this connection was reported when it was opened: it isn't another one. Only with `failure`. */
  readonly isReported?: true;
}

/** Characters of a failure's reason. */
const maxFailureLength = 300;

/** The boundary allowed it, but the network failed. */
export class UpstreamFailure extends Error {
  override readonly name = "UpstreamFailure";
  constructor(
    message: string,
    readonly kind: "unresolved" | "unreachable" | "timed-out",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
  get status(): 502 | 504 {
    return this.kind === "timed-out" ? 504 : 502;
  }
}

const unclaimed: NetworkDecision = { allowed: false, reason: "the sandbox belongs to no run yet" };

/** Enough for a name with both families and one spare; more would only prolong a failure. */
const maxAddressesTried = 4;

/** Checks that an allowed connection really is for the name that it was allowed for. */
export interface EgressChecks {
  /** The tunnel's name and that in its first bytes. */
  readonly firstFlight: typeof judgeFirstFlight;
  /** A request's target and its Host header. */
  readonly destination: typeof readHttpDestination;
}

export const egressChecks: EgressChecks = { firstFlight: judgeFirstFlight, destination: readHttpDestination };

interface GateOptions {
  readonly policy: NetworkBoundary;
  readonly isUnclaimed: () => boolean | Promise<boolean>;
  readonly lookup: Lookup;
  readonly hostAddresses: () => readonly string[];
  readonly onDecision: (decision: EgressDecision) => void;
  readonly limits: EgressLimits;
  readonly sockets: OpenSockets;
  readonly checks: EgressChecks;
  /** The deployer's own proxy. Undefined: connections are direct. */
  readonly upstreamProxy: UpstreamProxy | undefined;
}

type GateDecision = { readonly decision: NetworkDecision; readonly addresses: readonly string[] };

/** The only way out: every protocol asks here, and connections go only to addresses that were checked here. */
export class Gate {
  readonly #options: GateOptions;
  readonly #lookups: Lookups;
  #closed = false;

  constructor(options: GateOptions) {
    this.#options = options;
    this.#lookups = new Lookups(options.lookup, options.limits.lookups);
  }

  get limits(): EgressLimits {
    return this.#options.limits;
  }

  get checks(): EgressChecks {
    return this.#options.checks;
  }

  /** Resolves once and checks every address. Rejects with `UpstreamFailure` if a listed name doesn't resolve. */
  async admit(target: Target): Promise<GateDecision> {
    if (await this.#options.isUnclaimed()) return { decision: unclaimed, addresses: [] };
    const first = decideBeforeLookup(target, this.#options.policy);
    if (!first.allowed) return { decision: first, addresses: [] };
    if (isResolvedByProxy(target, this.#options.upstreamProxy)) {
      const reason = `${first.reason}; the proxy of egress.proxy resolves its name`;
      return { decision: { ...first, reason }, addresses: [] };
    }
    const addresses = target.kind === "address" ? [target.host] : await this.#resolve(target.host);
    const decision = decideConnection(target, addresses, this.#options.policy, this.#options.hostAddresses());
    return { decision, addresses };
  }

  /**
   * `admit`, which also reports final outcomes: a refusal, or an allowed name that doesn't resolve. What
   * is admitted is reported later, once, by the code that opens the connection.
   */
  async admitOrReport(target: Target, protocol: EgressProtocol): Promise<GateDecision | UpstreamFailure> {
    try {
      const admission = await this.admit(target);
      if (!admission.decision.allowed)
        this.report(target, protocol, admission.decision, admission.addresses[0]);
      return admission;
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      const decision = decideBeforeLookup(target, this.#options.policy);
      this.report(target, protocol, decision, undefined, { failure: error.message });
      return error;
    }
  }

  /** `dial`, which returns a failure and reports it as allowed, since the boundary didn't cause it. */
  async dialOrReport(admitted: AdmittedDestination, client: Duplex): Promise<Socket | UpstreamFailure> {
    try {
      return await this.dial(admitted, client);
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error;
      const { target, protocol, decision, addresses } = admitted;
      this.report(target, protocol, decision, addresses[0], { failure: error.message });
      return error;
    }
  }

  /** A connection that was reported when it was opened has failed before the server said anything. */
  reportFailure({ target, protocol, decision }: AdmittedDestination, failure: string): void {
    this.report(target, protocol, decision, undefined, { failure, isReported: true });
  }

  /** Reports a connection, and closes it if reporting fails: no connection without a record. */
  reportOpened(admitted: AdmittedDestination, upstream: Socket): void {
    try {
      this.report(admitted.target, admitted.protocol, admitted.decision, upstream.remoteAddress);
    } catch (error) {
      upstream.destroy();
      throw error;
    }
  }

  report(
    target: { readonly host: string; readonly port: number },
    protocol: EgressProtocol,
    decision: NetworkDecision,
    address?: string,
    { failure, isReported }: Pick<EgressDecision, "failure" | "isReported"> = {},
  ): void {
    this.#options.onDecision({
      target: { host: target.host, port: target.port },
      allowed: decision.allowed,
      reason: decision.reason,
      protocol,
      address,
      ...(failure === undefined ? {} : { failure: shortened(failure), isReported }),
    });
  }

  /**
   * Connects to the first admitted address that responds, through the deployer's proxy where that is the way. No name is
   * looked up here.
   *
   * @param client ends the attempt when it closes: one that leaves would otherwise keep a descriptor open.
   */
  async dial(
    { target, addresses }: Pick<AdmittedDestination, "target" | "addresses">,
    client: Duplex,
  ): Promise<Socket> {
    const proxy = proxyFor(target, addresses, this.#options.upstreamProxy);
    if (proxy !== undefined && addresses.length === 0) return await this.#tunnel(proxy, target, client);
    const { port } = target;
    let last: UpstreamFailure | undefined;
    for (const host of addresses.slice(0, maxAddressesTried)) {
      try {
        return proxy === undefined
          ? await this.#connect(host, port, client)
          : await this.#tunnel(proxy, { host, port }, client);
      } catch (error) {
        if (!(error instanceof UpstreamFailure)) throw error;
        last = error;
      }
    }
    throw last ?? new UpstreamFailure("the name has no address", "unresolved");
  }

  close(): void {
    this.#closed = true;
    this.#options.sockets.destroyAll();
  }

  async #resolve(name: string): Promise<readonly string[]> {
    const { lookupMs } = this.#options.limits;
    const late = new AbortController();
    const timer = setTimeout(() => {
      late.abort(new UpstreamFailure(`${name} was not resolved in ${lookupMs} ms`, "timed-out"));
    }, lookupMs);
    try {
      return await this.#lookups.resolve(name, late.signal);
    } catch (error) {
      if (error instanceof UpstreamFailure) throw error;
      throw new UpstreamFailure(
        `${name} can't be resolved (${codeOf(error) ?? "unknown error"})`,
        "unresolved",
        {
          cause: error,
        },
      );
    } finally {
      clearTimeout(timer);
    }
  }

  async #tunnel(
    proxy: ProxyEndpoint,
    target: { readonly host: string; readonly port: number },
    client: Duplex,
  ): Promise<Socket> {
    if (this.#closed) throw new UpstreamFailure("the session is closed", "unreachable");
    const left = new AbortController();
    const leave = () => left.abort(new UpstreamFailure("the client has left", "unreachable"));
    if (client.destroyed) leave();
    client.once("close", leave);
    try {
      return await openTunnel(proxy, target, {
        timeoutMs: this.#options.limits.connectMs,
        signal: left.signal,
        onSocket: (socket) => this.#options.sockets.add(socket),
      });
    } catch (error) {
      if (!(error instanceof ProxyFailed)) throw error;
      const isLate = error.code === "PROXY_TIMEOUT" || error.status === 504;
      throw new UpstreamFailure(error.message, isLate ? "timed-out" : "unreachable", { cause: error });
    } finally {
      client.off("close", leave);
    }
  }

  #connect(address: string, port: number, client: Duplex): Promise<Socket> {
    if (this.#closed) return Promise.reject(new UpstreamFailure("the session is closed", "unreachable"));
    if (client.destroyed) return Promise.reject(new UpstreamFailure("the client has left", "unreachable"));
    return new Promise((resolve, reject) => {
      const socket = connect({ host: address, port, allowHalfOpen: true, noDelay: true });
      this.#options.sockets.add(socket);
      const fail = (failure: UpstreamFailure) => {
        reject(failure);
        socket.destroy();
      };
      const leave = () => fail(new UpstreamFailure("the client has left", "unreachable"));
      client.once("close", leave);
      const { connectMs } = this.#options.limits;
      const timer = setTimeout(() => {
        fail(new UpstreamFailure(`${address} did not answer in ${connectMs} ms`, "timed-out"));
      }, connectMs);
      socket.once("close", () => {
        clearTimeout(timer);
        client.off("close", leave);
        fail(new UpstreamFailure(`the connection to ${address} was closed`, "unreachable"));
      });
      socket.once("error", (error) => {
        const kind = codeOf(error) === "ETIMEDOUT" ? "timed-out" : "unreachable";
        fail(
          new UpstreamFailure(
            `${address} refused or is unreachable (${codeOf(error) ?? "unknown error"})`,
            kind,
            {
              cause: error,
            },
          ),
        );
      });
      socket.once("connect", () => {
        clearTimeout(timer);
        client.off("close", leave);
        resolve(socket);
      });
    });
  }
}

const shortened = (text: string) => text.replace(/[\p{Cc}\s]+/gu, " ").slice(0, maxFailureLength);

/** A client's unparsable spelling, safe to log: printable ASCII, at most 255 characters. */
export function escapeForReport(raw: string): string {
  const escaped = [...raw.slice(0, 255)].map((character) =>
    character > " " && character <= "~"
      ? character
      : `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
  );
  return escaped.join("").slice(0, 255);
}

/**
 * One session's lookups. The host's resolver has few threads, which all sessions and the file system share, so that a
 * session which asks for names whose servers don't answer would keep all others from theirs: a few run at once, and
 * requests for one name share one.
 */
export class Lookups {
  readonly #lookup: Lookup;
  readonly #limit: number;
  readonly #running = new Map<string, Promise<readonly string[]>>();
  /** In order; each looks again whether it may begin. */
  readonly #waiting = new Set<() => void>();

  constructor(lookup: Lookup, limit: number) {
    this.#lookup = lookup;
    this.#limit = limit;
  }

  /** Rejects like the lookup, or with the signal's reason: a lookup that hasn't begun then never does. */
  async resolve(name: string, signal: AbortSignal): Promise<readonly string[]> {
    while (!signal.aborted && !this.#running.has(name) && this.#running.size >= this.#limit) {
      await this.#turn(signal);
    }
    const running = signal.aborted ? undefined : (this.#running.get(name) ?? this.#begin(name));
    this.#wake();
    return await unlessAborted(signal, async () => running ?? []);
  }

  #begin(name: string): Promise<readonly string[]> {
    const running = this.#lookup(name);
    this.#running.set(name, running);
    // Even if no request waits any longer: a lookup can't be cancelled, and has its thread until it ends.
    const end = () => {
      this.#running.delete(name);
      this.#wake();
    };
    running.then(end, end);
    return running;
  }

  #wake(): void {
    const [next] = this.#waiting;
    if (this.#running.size < this.#limit) next?.();
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = () => {
        this.#waiting.delete(go);
        signal.removeEventListener("abort", go);
        resolve();
      };
      this.#waiting.add(go);
      signal.addEventListener("abort", go, { once: true });
    });
  }
}

/** Every socket of one session, both sides, so that `close()` leaves none. */
export class OpenSockets {
  readonly #sockets = new Set<Socket>();

  get size(): number {
    return this.#sockets.size;
  }

  add(socket: Socket): void {
    if (this.#sockets.has(socket)) return;
    this.#sockets.add(socket);
    // "close" follows every error, and the socket's user acts on it; without a listener the error would end the process.
    socket.on("error", () => {});
    socket.once("close", () => this.#sockets.delete(socket));
  }

  destroyAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
