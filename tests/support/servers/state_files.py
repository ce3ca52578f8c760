"""A stack that nobody runs, as its state file would tell of it."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

from streams.local.lock import start_of
from streams.local.state import (
    ConnectAddress,
    KafkaAddress,
    Phase,
    PostgresAddress,
    RegistryAddress,
    S3Address,
    ServiceStatus,
    StackState,
)

_DUTIES = ("owner", "append", "read", "mirror", "project", "collect")


def stack_state(data: Path) -> StackState:
    """Return the state of a ready stack in `data`, supervised by this process."""
    me = psutil.Process()
    return StackState(
        data=data,
        profile="core",
        phase=Phase.READY,
        supervisor_pid=me.pid,
        supervisor_started_at=start_of(me),
        postgres=PostgresAddress(
            "127.0.0.1",
            5,
            "noetl",
            "postgres",
            "s3cret",
            {f"noetl_{duty}": "p@ss/" for duty in _DUTIES},
        ),
        kafka=KafkaAddress("127.0.0.1:1"),
        connect=ConnectAddress("http://127.0.0.1:2", data / "secrets"),
        s3=S3Address("http://127.0.0.1:3", "key", "s3cret", "bucket", "us-east-1"),
        registry=RegistryAddress(),
        services=(ServiceStatus("kafka", "4.3.1", "127.0.0.1:1", Path("/log"), pid=os.getpid()),),
    )
