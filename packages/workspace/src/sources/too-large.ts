/** An archive has more than was asked for. */
export class ArchiveTooLarge extends Error {}
