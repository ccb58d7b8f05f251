/** Where the files of a source go in the workspace: empty, or with a slash at the end. Pure. */
export function placeOf({ into }: { readonly into?: string | undefined }): string {
  return into === undefined ? "" : `${into.replace(/\/+$/, "")}/`;
}
