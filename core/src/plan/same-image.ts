/** Of two names of images, as a container engine resolves them: Docker Hub and `latest` may be left out. Pure. */
export function isSameImage(one: string, other: string | undefined): boolean {
  return other !== undefined && wholeName(one) === wholeName(other);
}

function wholeName(image: string): string {
  const named = image.replace(/^(?:docker\.io\/)?(?:library\/)?/, "");
  return /[:@][^/]*$/.test(named) ? named : `${named}:latest`;
}
