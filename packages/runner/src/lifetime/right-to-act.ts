/** A recorder's hold on a run that another process may take over. */
export interface RunHold {
  /** Increases with each owner of the run. */
  readonly fence: number;
  /** Whether the run is certainly still this process's. */
  readonly isCurrent: boolean;
  /** Resolves once it is. @throws the signal's reason */
  confirmed(signal: AbortSignal): Promise<void>;
}

/** Whether a run may act: always, unless its recorder holds it for a limited time. */
export class RightToAct {
  hold: RunHold | undefined;

  get isCurrent(): boolean {
    return this.hold?.isCurrent ?? true;
  }

  /** Called before each act outside this process. @throws the signal's reason */
  async confirmed(signal: AbortSignal): Promise<void> {
    await this.hold?.confirmed(signal);
  }
}
