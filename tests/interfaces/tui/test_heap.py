"""Threads share one heap, so that the browser stays small."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

_THREADS = """
import ctypes, sys, threading
from evalstore.interfaces.tui.heap import share_heap

if sys.argv[1] == "shared":
    share_heap()
barrier = threading.Barrier(4)

def allocate():
    taken = [b"x" * 400 for _ in range(1_000)]
    barrier.wait()

threads = [threading.Thread(target=allocate) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))
libc.fflush(None)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives each thread a heap")
def test_threads_share_one_heap() -> None:
    heaps = {}
    for how in ("apart", "shared"):
        command = [sys.executable, "-c", _THREADS, how]
        heaps[how] = subprocess.check_output(command, text=True).count("<heap nr=")
    assert heaps["apart"] > heaps["shared"] == 1
