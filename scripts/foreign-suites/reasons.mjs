/** @import { Reason } from "./comparison.mjs" */

/** @type {readonly Reason[]} the first that matches counts. */
export const reasons = [
  {
    suite: "cpython",
    tests:
      /^test_(?:bdb|import|importlib\.test_threaded_import|doctest\.TestDocTestFinder|support\.TestSupport\.test_forget|pickle\.\w+\.test_unpickle_module_race|runpy|trace)/,
    reason:
      "The test removes a file beside Python's library that isn't there. On a read-only mount the kernel says that first (`EROFS`, not `ENOENT`), as in every container whose `/usr` is read-only.",
  },
  {
    suite: "cpython",
    tests:
      /^(?:test_os\.ChownFileTests\.test_chown_|test_subprocess\.POSIXProcessTestCase\.test_(?:group|user))/,
    reason:
      "A session has one user and one group, and the kernel answers `EINVAL` for others, which its user namespace doesn't have, before `EPERM` for a missing right.",
  },
  {
    suite: "cpython",
    tests: /^test_socket\.GeneralModuleTests\.test_sethostname/,
    reason:
      "The system call filter answers before the kernel, and with `EACCES` where that says `EPERM`, so that a probe can tell them apart. Without the filter the call would fail too.",
  },
  {
    suite: "cpython",
    tests: /^test_url(?:lib2?|lib2_localnet)\./,
    reason:
      "Programs inside have the boundary's proxy in `HTTP_PROXY`. The test exchanges Python's sockets and expects what it would send without a proxy.",
  },
  {
    suite: "cpython",
    tests: /^test_spwd\./,
    reason:
      "There is no `/etc/shadow` inside, and outside it can't be read by an ordinary user: another error.",
  },
  {
    suite: "cpython",
    tests: /^test_largefile\./,
    reason: "It needs more than 2 GiB in `/tmp`, which is in memory and has `scratchMb`, 256 MiB by default.",
  },
  {
    suite: "cpython",
    tests: /^test_os\.MakedirTests\.test_exist_ok_s_isgid_directory/,
    reason: "Set-group-id bits are [refused by design](programs.md#refused-by-design).",
  },
  {
    suite: "cpython",
    tests: /^test_uuid\.TestInternals/,
    reason: "It looks for the hardware address of a network interface. Inside there is only loopback.",
  },
];
