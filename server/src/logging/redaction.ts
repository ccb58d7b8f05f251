import { Redactor } from "@ambit/runner";

/** Redacts secrets from the log: the server's token always, credentials as long as their run or session. */
export class LogRedaction {
  /** One redactor per set of secrets, so that none has to be rebuilt when another is added or removed. */
  readonly #redactors = new Set<Redactor>();

  /** Hides the secrets until the returned function is called. */
  hide(secrets: readonly string[]): () => void {
    if (secrets.length === 0) return () => {};
    const redactor = new Redactor(secrets);
    this.#redactors.add(redactor);
    return () => void this.#redactors.delete(redactor);
  }

  line(line: string): string {
    let redacted = line;
    for (const redactor of this.#redactors) redacted = redactor.text(redacted);
    return redacted;
  }
}
