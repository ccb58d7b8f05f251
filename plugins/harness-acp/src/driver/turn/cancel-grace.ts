/** The time that an agent gets to end a turn after `session/cancel`. */
export class CancelGrace {
  readonly #request = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  /** Aborts after half of the time: `session/cancel` alone didn't end the turn, so the prompt itself is cancelled. */
  get cancelRequest(): AbortSignal {
    return this.#request.signal;
  }

  /** Resolves when the time is over; never after `end`. */
  async over(milliseconds: number): Promise<void> {
    await this.#wait(milliseconds / 2);
    this.#request.abort();
    await this.#wait(milliseconds / 2);
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #wait(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      this.#timer = setTimeout(resolve, milliseconds);
    });
  }
}
