/** What the driver grants an agent, whichever it is. */
export interface DriverLimits {
  /** Milliseconds to end a turn after being told to; then the agent is killed. */
  readonly cancelMs: number;
  /** Milliseconds to leave after its input has ended; then the agent is killed. */
  readonly closeMs: number;
  /** Characters of one message. */
  readonly messageCharacters: number;
  /** Characters of events that wait for their consumer; past it the agent's output isn't read. */
  readonly bufferedCharacters: number;
}
