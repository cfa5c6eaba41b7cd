"""What the system holds a child to: its own namespaces (no network, no process but its own), and rlimits."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

from whygrad.execute.jobs import Failure, Limits

NEW_USER, NEW_PID, NEW_NET, NEW_IPC = 0x10000000, 0x20000000, 0x40000000, 0x08000000
DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG (Linux, prctl.h)."""

NOBODY = 65534
MB = 1 << 20


def apart() -> bool:
    """Go on in a process that has no network and can put its children apart; whether the system allows it.

    It is a fork of this one, which waits for it and ends with it. Call it before there is much to copy.
    """
    if not sys.platform.startswith("linux"):
        return False
    if os.geteuid() == 0:
        # Root's processes are not counted against RLIMIT_NPROC; only the real user id decides whose they are.
        with suppress(OSError):
            os.setresuid(NOBODY, 0, 0)
    if not (_unshare(NEW_USER | NEW_PID | NEW_NET | NEW_IPC) and _map_user()):
        return False
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        os._exit(abs(os.waitstatus_to_exitcode(status)))
    die_with_parent()
    return True


def next_child_apart(own: int) -> bool:
    """Give the next child a process namespace of its own: it sees no other process, and its death ends all in it.

    `own` is an open descriptor of this process's own namespace, /proc/self/ns/pid.
    """
    return int(_libc().setns(own, NEW_PID)) == 0 and _unshare(NEW_PID)


def count_alone() -> None:
    """From here on the processes of this one are counted apart from all others."""
    if sys.platform.startswith("linux") and _unshare(NEW_USER):
        _map_user()


def _unshare(what: int) -> bool:
    return int(_libc().unshare(what)) == 0


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _map_user() -> bool:
    """Be the same user in the new namespace as outside."""
    user, group = _IDS
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            descriptor = os.open(f"/proc/self/{name}", os.O_WRONLY)
            try:
                os.write(descriptor, text.encode())
            finally:
                os.close(descriptor)
    except OSError:
        return False
    return True


_IDS = (os.geteuid(), os.getegid()) if hasattr(os, "geteuid") else (0, 0)


def die_with_parent() -> None:
    """The kernel kills this process when the one that forked it is gone."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def restrict(limits: Limits) -> None:
    """Hold this process and its children to `limits`, as far as the system has such limits."""
    try:
        import resource
    except ImportError:  # Windows
        return
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a file too large is an OSError, not a death
    wanted = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, limits.file_mb * MB),
        (resource.RLIMIT_CPU, int(limits.time_s) * 4 + 1),
    ]
    if hasattr(resource, "RLIMIT_NPROC"):
        wanted.append((resource.RLIMIT_NPROC, limits.processes))
    size = _address_space()
    if size:
        wanted.append((resource.RLIMIT_AS, size + limits.memory_mb * MB))
    for which, value in wanted:
        with suppress(ValueError, OSError):
            resource.setrlimit(which, (value, value))


def _address_space() -> int:
    """How many bytes this process has mapped."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def limit_of(error: BaseException) -> str:
    """Which limit an exception speaks of, if one: memory, files or processes."""
    import errno

    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, RuntimeError) and ("can't allocate memory" in str(error) or "not enough memory" in str(error)):
        return "memory"
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return "processes"
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return "files"
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return "memory"
    if isinstance(error, BlockingIOError) and error.errno == errno.EAGAIN:
        return "processes"
    return ""


def sentence(name: str, limits: Limits) -> str:
    """What is said when a limit is met."""
    return {
        "time": f"it did not end within {limits.time_s:g} s",
        "memory": f"it wanted more than {limits.memory_mb} MB of memory",
        "processes": f"it started more than {limits.processes} processes or threads",
        "files": f"it wrote a file of more than {limits.file_mb} MB",
        "output": f"it printed more than {limits.output_kb} kB",
    }[name]


def explained(failure: Failure, limits: Limits) -> str:
    """An error in a sentence; where a limit stands behind it, that."""
    return f"{sentence(failure.limit, limits)} ({failure})" if failure.limit else str(failure)
