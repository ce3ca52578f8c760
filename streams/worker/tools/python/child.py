"""Child process that runs authors' Python: one request at a time, limited, output captured.

It imports only the standard library, so that it starts fast and holds no secrets.
A request or an answer is four bytes of length and then JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import json
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from functools import lru_cache
from threading import Thread
from types import CodeType
from typing import BinaryIO, TypedDict

from streams.worker.tools.python.module_run import SOURCE, ModuleRun, run_module

LOG_CHARS = 8_000
_LOOK_S = 0.5
# A copy of events/text.py, which the child must not import.
_NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")


class CpuTimeUp(Exception):
    """The code exceeded its CPU time."""


class ModuleGlobals(TypedDict):
    """Globals of code that runs as a module, beside its arguments."""

    context: dict[str, object]
    libs: dict[str, object]


class PythonRequest(TypedDict):
    """Code to run, and its arguments; with `module`, these are globals."""

    code: str
    args: dict[str, object]
    module: ModuleGlobals | None


def execute(request: PythonRequest) -> bytes:
    """Run code and call its `main`; return JSON: its result or error, and its output.

    `main` gets those of `args` that its signature names, and all of them as `args` or `input`
    if it names that. Code without a `main` returns its variable `result`.
    """
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            result = _result(request)
        return _written({"result": result, "log": _bounded(printed.getvalue())})
    except CpuTimeUp:
        error = {"kind": "python.cpu", "message": "the CPU time limit was exceeded"}
    except MemoryError:
        error = {"kind": "python.memory", "message": "the memory limit was exceeded"}
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - authors may raise anything
        error = _error_of(raised)
    return _written({"error": error, "log": _bounded(printed.getvalue())})


@lru_cache(maxsize=256)
def _compiled(code: str) -> CodeType:
    return compile(code, SOURCE, "exec")


def _result(request: PythonRequest) -> object:
    code, args, module = request["code"], request["args"], request["module"]
    if module is None:
        return _called(_compiled(code), args)
    return run_module(ModuleRun(code=code, inputs=args, **module))


def _called(code: CodeType, args: Mapping[str, object]) -> object:
    space: dict[str, object] = {"__name__": "playbook"}
    exec(code, space)  # noqa: S102 - that is what this process is for
    main = space.get("main")
    if not callable(main):
        return space.get("result")
    result = main(**_arguments(main, args))
    return asyncio.run(result) if inspect.iscoroutine(result) else result


def _arguments(main: Callable[..., object], args: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of `main`."""
    chosen: dict[str, object] = {}
    for name, parameter in inspect.signature(main).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            return {**args, **chosen}
        if name in args:
            chosen[name] = args[name]
        elif name in ("args", "input"):
            chosen[name] = args
        elif (
            parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL
        ):
            raise TypeError(f"main() needs {name!r}; give it under 'args' of the task")
    return chosen


def _error_of(error: BaseException) -> dict[str, str]:
    """Return the exception, and its position in the author's code."""
    frames = [one for one in traceback.extract_tb(error.__traceback__) if one.filename == SOURCE]
    where = "".join(f"line {one.lineno}, in {one.name}\n" for one in frames)
    what = _clean(f"{type(error).__name__}: {error}")
    return {"kind": "python.exception", "message": what[:2000], "trace": where[-2000:]}


def _plain(value: object) -> object:
    """Return dates, decimals and UUIDs as text, sets and tuples as lists."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if type(value).__module__ in ("datetime", "decimal", "uuid"):
        return value.isoformat() if hasattr(value, "isoformat") else str(value)
    raise TypeError(f"the result holds a {type(value).__name__}, which is not JSON")


def _clean(text: str) -> str:
    """Replace characters that Postgres text cannot hold."""
    return _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)


def _bounded(text: str) -> str:
    text = _clean(text)
    if len(text) <= LOG_CHARS:
        return text
    return f"{text[:LOG_CHARS]}\n… {len(text) - LOG_CHARS} more characters"


def _written(answer: dict[str, object]) -> bytes:
    # Lone surrogates cannot be encoded: reported here as the author's error.
    text = json.dumps(answer, allow_nan=False, ensure_ascii=False, default=_plain)
    return text.encode()


def framed(body: bytes) -> bytes:
    """Return a message with its length prefix."""
    return len(body).to_bytes(4, "big") + body


def main(memory_bytes: int, cpu_s: int) -> None:
    """Answer requests until the other side closes the pipe."""
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of native code must not mix with the answers
    sys.stdin = io.StringIO()
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    if memory_bytes:
        _limit_memory(memory_bytes)
    while (request := _read(requests)) is not None:
        if cpu_s:
            _limit_cpu(cpu_s)
        answers.write(framed(execute(request)))
        answers.flush()


def _end_with(parent: int) -> None:
    """End with the worker, even within a task: another attempt may be running."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)


def _read(source: BinaryIO) -> PythonRequest | None:
    """Return the next request; None at the end."""
    length = source.read(4)
    if len(length) < 4:
        return None
    request: PythonRequest = json.loads(source.read(int.from_bytes(length, "big")))
    return request


def _limit_memory(size: int) -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def _limit_cpu(seconds: int) -> None:
    """Limit the CPU time of this request; the OS counts that of the whole process."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        signal.signal(signal.SIGXCPU, _on_cpu)
        used = resource.getrusage(resource.RUSAGE_SELF)
        soft = int(used.ru_utime + used.ru_stime) + 1 + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _on_cpu(_number: int, _frame: object) -> None:
    raise CpuTimeUp


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
