"""Wiring of the long-running processes: one module per role, listed in `streams.app.ROLES`.

To add a role, write `streams/roles/<role>.py` with one function and name it in `ROLES`:

    async def run(settings: Settings, data: Path, stop: asyncio.Event, ready: Ready) -> None:

It opens its ports with the functions of `streams.app`, attaches its feed and its timers to a
`Shell`, and runs that until `stop` is set:

    async with (
        open_log(settings, role="planner") as log,
        KafkaFeed(
            settings.event_store.connection.url,
            [event_topic("execution")],
            group="noetl.planner",
            instance=settings.runtime.shard_id,
            on_assigned=planner.take_over,
        ) as feed,
    ):
        shell = Shell("planner", role_folder(settings, data))
        shell.attach(feed, planner.handle, set_aside=planner.suspend)
        shell.every(1.0, planner.reap)
        await shell.run(stop, ready)

`role_folder(settings, data)` is this process's own persistent folder, for its journal and its
tables. An exception from `run` ends the process; its supervisor restarts it. `Unavailable`
raised by a handler is retried by the shell; raised while opening, it ends the process, too.
A role without a feed (the API) calls `ready()` itself and waits for `stop`.
"""
