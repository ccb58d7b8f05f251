/** Ids that are remembered. Each took an answer of a user. */
const mostRemembered = 65_536;

/**
 * Which answers were used, on this runner, for as long as it runs: messages bring the same answer again with every
 * request, and it allows one call. The oldest are forgotten first; an answer so old stands before a later turn.
 */
export class UsedAnswers {
  readonly #ids = new Set<string>();

  /** False when it was used before. */
  use(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    const [oldest] = this.#ids;
    if (this.#ids.size > mostRemembered && oldest !== undefined) this.#ids.delete(oldest);
    return true;
  }
}
