import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type SecureContext, TLSSocket } from "node:tls";
import { gzipSync } from "node:zlib";
import type { HiddenCredential } from "@ambit/core/plugin";
import { keysZone } from "./changing-names.js";
import { boundConnections } from "./network-decoys.js";
import { type DecoyAddresses, loopback } from "./place.js";

/** An authority that makes a server's certificate for any name. */
export interface CertificateMaker {
  /** PEM. */
  readonly certificate: string;
  contextFor(name: string): Promise<SecureContext>;
  /** A server's key and certificate, in PEM. */
  certificateFor(name: string): Promise<{ readonly key: string; readonly certificate: string }>;
}

/** A request that the server received. */
export interface ReceivedRequest {
  /** Over TLS; undefined in plain text. */
  readonly serverName: string | undefined;
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
}

const keys = `git.${keysZone}`;
const second = `second.${keysZone}`;
const impostor = `impostor.${keysZone}`;
/** More than all attacks of a suite send. */
const maxRequests = 10_000;

/** A server of this host that credentials are sent to: over TLS under three names, one of which isn't its own. */
export class CredentialHost {
  readonly names = { keys, second, impostor };
  readonly #server: Server;
  readonly #received: ReceivedRequest[] = [];

  readonly #own: CertificateMaker;

  private constructor(
    own: CertificateMaker,
    stranger: CertificateMaker,
    /** Where it listens. */
    readonly address: string,
  ) {
    this.#own = own;
    const SNICallback = (name: string, done: (error: Error | null, context?: SecureContext) => void) => {
      (name === impostor ? stranger : own).contextFor(name).then((context) => done(null, context), done);
    };
    this.#server = createTlsServer({ SNICallback }, (request, response) => this.#answer(request, response));
    boundConnections(this.#server);
  }

  /**
   * @param own the authority that the backend under test trusts · @param stranger one that it doesn't.
   * @param place where it listens, and its names lead: that of the suite's `names`.
   */
  static async open(
    own: CertificateMaker,
    stranger: CertificateMaker,
    { address }: Pick<DecoyAddresses, "address"> = loopback,
  ): Promise<CredentialHost> {
    const host = new CredentialHost(own, stranger, address);
    await once(host.#server.listen(0, address), "listening");
    return host;
  }

  /**
   * The same, with the file of the authority that the backend under test must trust.
   *
   * @param folder where the file is written · @param place as `open`.
   */
  static async openIn(
    folder: string,
    makeAuthority: () => Promise<CertificateMaker>,
    place?: Pick<DecoyAddresses, "address">,
  ): Promise<{ readonly credentialHost: CredentialHost; readonly authorityFile: string }> {
    const own = await makeAuthority();
    const authorityFile = join(folder, "credential-host.pem");
    await writeFile(authorityFile, own.certificate);
    return { credentialHost: await CredentialHost.open(own, await makeAuthority(), place), authorityFile };
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** The entries that a boundary must list to reach it. */
  get allowlist(): readonly string[] {
    return [keys, second, impostor, this.address].map((host) => `${host}:${this.port}`);
  }

  /** One credential for each kind of misuse. All have the same value: the name shows which one was sent where. */
  credentials(value: string): readonly HiddenCredential[] {
    const at = (name: string) => [`${name}:${this.port}`];
    return [
      { name: "KEY", value, hosts: at(keys), as: "bearer" },
      {
        name: "READER",
        value,
        hosts: at(keys),
        as: { header: "x-reader" },
        paths: ["/acme/*"],
        access: "read",
      },
      { name: "SECOND", value, hosts: at(second), as: "bearer" },
      { name: "IMPOSTOR", value, hosts: at(impostor), as: "bearer" },
    ];
  }

  /** Writes a trust store like a careless broker: with a key next to its certificate. @returns its path. */
  async carelessStore(folder: string): Promise<string> {
    const { key, certificate } = await this.#own.certificateFor(`careless.${keysZone}`);
    const path = join(folder, "careless-store.pem");
    await writeFile(path, `${certificate}${key}\n`, { mode: 0o644 });
    return path;
  }

  /** Requests that carried this text. */
  received(text: string): readonly ReceivedRequest[] {
    return this.#received.filter((request) => JSON.stringify(request).includes(text));
  }

  close(): Promise<void> {
    this.#server.closeAllConnections();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { method = "", url = "", rawHeaders, socket } = request;
    const serverName = socket instanceof TLSSocket && socket.servername ? socket.servername : undefined;
    if (this.#received.length < maxRequests) this.#received.push({ serverName, method, url, rawHeaders });
    const sent = request.headers.authorization ?? "nothing";
    request.resume();
    response.shouldKeepAlive = false;
    if (url.startsWith("/gzip")) {
      return void response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(`you sent ${sent}`));
    }
    if (!url.startsWith("/echo")) return void response.end("ok");
    response.writeHead(200, { "x-echo": sent });
    // In small pieces, and encoded: a search for the whole value doesn't find it.
    const inHex = Buffer.from(sent).toString("hex");
    for (const piece of `you sent ${sent} or ${btoa(sent)} or ${inHex}`.match(/.{1,5}/g) ?? [])
      response.write(piece);
    response.end();
  }
}
