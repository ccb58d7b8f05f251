/** What git keeps is no part of a workspace's files, and would be executed where it is put. @param name of a file or folder */
export function isGitFolder(name: string): boolean {
  return /^(\.git|git~1)$/i.test(name);
}
