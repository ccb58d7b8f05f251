/**
 * What git keeps is no part of a workspace's files, and would be executed where it is put. So are names that lead to its folder on
 * other file systems, as git itself refuses them: with dots, spaces or a stream behind them, or characters that HFS+ ignores.
 * @param name of a file or folder
 */
export function isGitFolder(name: string): boolean {
  return /^(?:\.git|git~1)[. ]*(?:$|:)/i.test(name.replace(ignored, ""));
}

const ignored = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g;
