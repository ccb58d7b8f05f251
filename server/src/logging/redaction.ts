import { Redactor } from "@ambit/runner";

/** Keeps secrets out of the log: the server's token for good, credentials while their run or session lasts. */
export class LogRedaction {
  /** One for each that hides something: none has to be built anew when another comes or goes. */
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
