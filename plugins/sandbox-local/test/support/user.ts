/** Whether this test is run by root; tests then cover what only root can do, and skip what only others can't. */
export const isRoot = process.getuid?.() === 0;

/** An unprivileged user of this host, for runners that tests start as root. */
export const ordinaryUser = { uid: 12_345, gid: 12_345 };
