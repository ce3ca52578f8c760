"""Wiring of the long-running processes: one module per role, listed in `streams.app.ROLES`.

To add a role, write `streams/roles/<role>.py` with its Faust application and one function, and
name the function in `ROLES`:

    def census_app(settings: Settings, data: Path) -> Application:
        return role_application(settings, data, group="noetl.census", topics=[TOPIC])

    async def run(
        settings: Settings,
        data: Path,
        stop: asyncio.Event,
        ready: Ready,
        app: Application | None = None,
    ) -> None:

It opens its ports with the functions of `streams.app`, attaches its feed and its timers to a
process, and runs that until `stop` is set:

    async with open_log(settings, role="census", lanes=1) as log:
        process = open_process(app or census_app(settings, data), settings, data)
        feed = TopicFeed(process.app, on_assigned=census.take_over)
        process.attach(feed, census.handle, set_aside=census.set_aside)
        process.every(1.0, census.reap)
        await process.run(stop, ready)

`app` is given if Faust's own command started the application (`streams.apps`).
`role_folder(settings, data)` is this process's own persistent folder, for its journal and its
tables. An exception from `run` ends the process; its supervisor restarts it. `Unavailable`
raised by a handler is retried by the process; raised while opening, it ends the process, too.
A role without a feed (the API) has no application: it calls `ready()` itself and waits for
`stop`.
"""
