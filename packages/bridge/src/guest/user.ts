export interface User {
  readonly uid: number;
  readonly gid: number;
}
