import type { JsonObject } from "@ambit/core/contract";
import type {
  Publication,
  PublishedOutcome,
  PublishedServer,
  PublishedTool,
  Scope,
  ToolDelivery,
} from "@ambit/core/plugin";

export interface CallOptions {
  readonly id?: string;
  readonly signal?: AbortSignal;
}

/** One published server, as an agent sees it. */
export interface ConnectedTools {
  list(): readonly PublishedTool[];
  call(name: string, given?: JsonObject, options?: CallOptions): Promise<PublishedOutcome>;
}

/** Hands publications to the scripted agent without a network in between. */
export class FakeDelivery implements ToolDelivery {
  readonly name = "fake-delivery";
  readonly site = "runner";
  readonly claims = [];
  readonly #published = new Map<string, { readonly publication: Publication; listed: boolean }>();
  onPublish: () => Promise<void> = async () => {};

  touches(): ["network"] {
    return ["network"];
  }

  gaps(): [] {
    return [];
  }

  async probe(): Promise<[]> {
    return [];
  }

  async publish(publication: Publication, scope: Scope): Promise<PublishedServer> {
    await this.onPublish();
    const url = `http://127.0.0.1/${publication.name}/${this.#published.size}`;
    const entry = { publication, listed: false };
    this.#published.set(url, entry);
    scope.defer(() => {
      this.#published.delete(url);
    });
    return { name: publication.name, url, headers: {}, listed: () => entry.listed };
  }

  /** How many publications are open. */
  get open(): number {
    return this.#published.size;
  }

  connect(server: PublishedServer): ConnectedTools {
    const entry = this.#published.get(server.url);
    if (entry === undefined) throw new Error(`nothing is published at ${server.url}`);
    return {
      list: () => {
        entry.listed = true;
        return entry.publication.tools;
      },
      call: (name, given = {}, { id, signal = new AbortController().signal } = {}) =>
        entry.publication.call({ name, arguments: given, signal, ...(id === undefined ? {} : { id }) }),
    };
  }
}
