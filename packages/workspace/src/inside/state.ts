/** The state of a regular file, as `Wish.known` has it. */
export function stateOf(digest: string, executable: boolean): string {
  return executable ? `x:${digest}` : digest;
}
