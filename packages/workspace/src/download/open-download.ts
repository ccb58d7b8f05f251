/** The beginning of an answer, whose content is still on its way. */
export interface OpenedDownload {
  readonly status: number;
  readonly location: string | undefined;
  /** As the server announces it. */
  readonly size: number | undefined;
  /** Its bytes as they were sent, once. Throws where they are cut off. */
  readonly content: AsyncIterable<Uint8Array>;
  /** Ends the connection. */
  close(): void;
}

/**
 * Asks for a file at an address that the operator allows, without following redirects. Rejects where there is no answer.
 */
export type OpenDownload = (
  request: { readonly url: URL; readonly headers: Readonly<Record<string, string>> },
  signal: AbortSignal,
) => Promise<OpenedDownload>;
