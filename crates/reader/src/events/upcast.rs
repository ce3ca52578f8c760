//! Upcasters: convert old events to the newest version of their schema (streams/events/upcast.py).

use serde_json::Value;

use crate::error::{Error, Result};
use crate::events::model::Event;
use crate::events::types::find;
use crate::json::Object;

/// The part of an event that its schema version describes.
pub struct Body {
    pub meta: Object,
    pub context: Value,
    pub result: Value,
}

/// One step from a version of a schema to a later one.
pub struct Upcaster {
    pub schema_name: &'static str,
    pub from_version: i32,
    pub to_version: i32,
    pub change: fn(Body) -> Body,
}

/// The steps of this program; empty while every schema is at its first version.
pub const UPCASTERS: &[Upcaster] = &[];

/// The event at the version of its type. Its checksum stays that of the stored bytes.
pub fn upcast(event: Event, steps: &[Upcaster]) -> Result<Event> {
    let target = find(&event.event_type).map_or(0, |one| one.version);
    upcast_to(event, target, steps)
}

fn upcast_to(mut event: Event, target: i32, steps: &[Upcaster]) -> Result<Event> {
    while event.schema_version != target {
        let (name, version) = (&event.schema_name, event.schema_version);
        let step = steps.iter().find(|one| one.schema_name == name && one.from_version == version);
        let Some(step) = step.filter(|one| one.to_version <= target) else {
            return Err(Error(format!("{name}: no upcaster from version {version} to {target}")));
        };
        let Event { meta, context, result, .. } = event;
        let body = (step.change)(Body { meta, context, result });
        event.meta = body.meta;
        event.context = body.context;
        event.result = body.result;
        event.schema_version = step.to_version;
    }
    Ok(event)
}
