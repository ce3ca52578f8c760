//! Rows of results, from their events (streams/projector/results.py, streams/results/reference.py).

use serde_json::Value;

use crate::error::Result;
use crate::events::known::ResultStored;
use crate::events::model::Event;
use crate::json::python_str;
use crate::locator::result_uri;
use crate::projector::rows::{Fields, Kind, Row};

pub fn stored_row(event: &Event, stored: &ResultStored) -> Result<Row> {
    let (fields, payload) = (&stored.result, event.payload_ref.as_ref());
    let step = if stored.node.is_empty() { "step" } else { &stored.node };
    let task = stored.task.as_deref().filter(|one| !one.is_empty()).unwrap_or(step);
    let name = result_uri(event.root_id, step, task, stored.result_id)?;
    let uri = text(fields.get("ref")).filter(|one| !one.is_empty()).unwrap_or(name);
    let compression = fields.get("meta").and_then(|meta| text(meta.get("compression")));
    Ok(Fields::new()
        .number("ref_id", stored.result_id)
        .text("ref", &uri)
        .number("execution_id", event.root_id)
        .text("tenant_id", &event.tenant_id)
        .text("organization_id", &event.organization_id)
        .maybe_number("parent_ref_id", stored.parent_result_id)
        .maybe_text("step_name", event.node_name.as_deref())
        .maybe_text("task_label", stored.task.as_deref())
        .text("store_tier", &stored.store)
        .maybe_text("physical_uri", payload.map(|one| one.uri.as_str()))
        .text("scope", &stored.scope)
        .maybe_text("content_type", payload.map(|one| one.media_type.as_str()))
        .maybe_number("byte_length", payload.map(|one| one.byte_length))
        .maybe_text("sha256", payload.map(|one| one.sha256.as_str()))
        .maybe_text("compression", compression.as_deref())
        .json("extracted", fields.get("extracted"))
        .json("preview", fields.get("preview"))
        .maybe_text("expires_at", stored.expires_at.as_deref())
        .time("created_at", event.at())
        .number("last_seq", event.seq())
        .row(Kind::ResultRef, stored.result_id))
}

pub fn expired_row(event: &Event, result_id: i64) -> Row {
    Fields::new()
        .number("ref_id", result_id)
        .time("expired_at", event.at())
        .number("last_seq", event.seq())
        .row(Kind::ResultRef, result_id)
}

fn text(value: Option<&Value>) -> Option<String> {
    value.filter(|one| !one.is_null()).map(python_str)
}
