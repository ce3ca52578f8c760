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

/// The steps of this program (streams/events/upcasters.py).
pub const UPCASTERS: &[Upcaster] = &[Upcaster {
    schema_name: "noetl.frame.lease_expired",
    from_version: 1,
    to_version: 2,
    change: frame_lease_expired_2,
}];

/// Version 1 had no reason, or the text of the only one, if the lease did not run out.
fn frame_lease_expired_2(mut body: Body) -> Body {
    let text = body.meta.get("reason").and_then(Value::as_str).unwrap_or_default();
    let reason = if text.is_empty() { "expired" } else { "restarted" };
    body.meta.insert("reason".into(), reason.into());
    body
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::model::Assigned;

    const STEPS: &[Upcaster] = &[
        Upcaster { schema_name: "noetl.x", from_version: 1, to_version: 2, change: with_two },
        Upcaster { schema_name: "noetl.x", from_version: 2, to_version: 3, change: with_three },
    ];

    fn with_two(mut body: Body) -> Body {
        body.meta.insert("two".into(), 2.into());
        body
    }

    fn with_three(mut body: Body) -> Body {
        let two = body.meta["two"].clone();
        body.meta.insert("three".into(), two);
        body
    }

    fn event(schema_version: i32) -> Event {
        Event {
            event_id: 1,
            root_type: "execution".into(),
            root_id: 1,
            tenant_id: "t".into(),
            organization_id: "o".into(),
            event_type: "x".into(),
            schema_name: "noetl.x".into(),
            schema_version,
            causation_id: None,
            parent_execution_id: None,
            catalog_id: None,
            node_name: None,
            status: None,
            error: None,
            current_item: Value::Null,
            meta: Object::new(),
            context: Value::Null,
            result: Value::Null,
            payload_ref: None,
            assigned: Assigned { seq: 1, position: 1, stream_version: 1, ingest_time: 0 },
        }
    }

    #[test]
    fn steps_are_applied_in_the_order_of_their_versions() {
        let found = upcast_to(event(1), 3, STEPS).unwrap();
        assert_eq!((found.schema_version, &found.meta["three"]), (3, &2.into()));
    }

    #[test]
    fn a_missing_step_is_an_error() {
        assert!(upcast_to(event(1), 3, &STEPS[..1]).is_err());
        assert!(upcast_to(event(4), 3, STEPS).is_err());
        assert_eq!(upcast_to(event(3), 3, &[]).unwrap().schema_version, 3);
    }
}
