/** Whether this test is run by root; what only root can do is then seen to, and what only others can't isn't. */
export const isRoot = process.getuid?.() === 0;

/** A user of this host without rights, for runners that tests start as root. */
export const ordinaryUser = { uid: 12_345, gid: 12_345 };
