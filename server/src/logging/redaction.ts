import { Redactor } from "@ambit/core";

/** Keeps secrets out of the log: the server's token for good, a request's credentials while its run lasts. */
export class LogRedaction {
  readonly #hidden = new Map<symbol, readonly string[]>();
  #redactor = new Redactor([]);

  /** Hides the secrets until the returned function is called. */
  hide(secrets: readonly string[]): () => void {
    if (secrets.length === 0) return () => {};
    const key = Symbol();
    // A log line is JSON: a secret with a quote in it stands there escaped.
    const escaped = secrets.map((secret) => JSON.stringify(secret).slice(1, -1));
    this.#hidden.set(key, [...secrets, ...escaped]);
    this.#rebuild();
    return () => {
      if (this.#hidden.delete(key)) this.#rebuild();
    };
  }

  line(line: string): string {
    return this.#redactor.text(line);
  }

  #rebuild(): void {
    this.#redactor = new Redactor([...new Set([...this.#hidden.values()].flat())]);
  }
}
