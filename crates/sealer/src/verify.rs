//! Does an envelope match its checksum? Its canonical JSON is written again from its Avro.

use crate::avro::Reader;
use crate::json::{write_number, write_text};
use crate::record::HEADER;
use crate::time::write_utc;

/// An object of canonical JSON: names must come in ascending order.
struct Object {
    out: Vec<u8>,
    is_empty: bool,
}

impl Object {
    fn new(capacity: usize) -> Self {
        let mut out = Vec::with_capacity(capacity);
        out.push(b'{');
        Object {
            out,
            is_empty: true,
        }
    }

    fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if !self.is_empty {
            self.out.push(b',');
        }
        self.is_empty = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        &mut self.out
    }

    fn text(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            write_text(self.name(name), text);
        }
    }

    fn number(&mut self, name: &str, number: Option<i64>) {
        if let Some(number) = number {
            write_number(self.name(name), number.into());
        }
    }

    /// A 64-bit id, which is text in JSON.
    fn id(&mut self, name: &str, id: Option<i64>) {
        if let Some(id) = id {
            let out = self.name(name);
            out.push(b'"');
            write_number(out, id.into());
            out.push(b'"');
        }
    }

    fn time(&mut self, name: &str, millis: i64) {
        let out = self.name(name);
        out.push(b'"');
        write_utc(out, millis);
        out.push(b'"');
    }

    fn raw(&mut self, name: &str, json: Option<&[u8]>) {
        if let Some(json) = json {
            self.name(name).extend_from_slice(json);
        }
    }

    fn end(mut self) -> Vec<u8> {
        self.out.push(b'}');
        self.out
    }
}

/// Whether an envelope surely matches its checksum; where this says no, the reference decides.
///
/// `meta` is taken to be canonical as it is, which is how sealers write it.
pub fn matches(envelope: &[u8]) -> bool {
    let avro = envelope.get(HEADER..).unwrap_or_default();
    canonical(avro).is_some_and(|(json, checksum)| blake3::hash(&json).to_hex().as_str() == checksum)
}

fn canonical(avro: &[u8]) -> Option<(Vec<u8>, &str)> {
    let mut from = Reader::new(avro);
    let event_id = from.long().ok()?;
    let tenant_id = from.text().ok()?;
    let organization_id = from.text().ok()?;
    let root_type = from.text().ok()?;
    let root_id = from.long().ok()?;
    let execution_id = maybe_long(&mut from)?;
    let parent_execution_id = maybe_long(&mut from)?;
    let catalog_id = maybe_long(&mut from)?;
    let stream_id = from.text().ok()?;
    let aggregate_type = from.text().ok()?;
    let aggregate_id = from.text().ok()?;
    let event_type = from.text().ok()?;
    let schema_name = from.text().ok()?;
    let schema_version = from.long().ok()?;
    let event_time = from.long().ok()?;
    let producer = from.text().ok()?;
    let causation_id = maybe_long(&mut from)?;
    let correlation_id = from.text().ok()?;
    let idempotency_key = from.text().ok()?;
    let node_name = maybe_text(&mut from)?;
    let node_type = maybe_text(&mut from)?;
    let status = maybe_text(&mut from)?;
    let error = maybe_text(&mut from)?;
    let current_index = maybe_long(&mut from)?;
    let current_item = maybe_text(&mut from)?;
    let meta = from.text().ok()?;
    let context = maybe_text(&mut from)?;
    let result = maybe_text(&mut from)?;
    let payload_ref = if from.present().ok()? {
        Some(reference(&mut from)?)
    } else {
        None
    };
    let trace = maybe_text(&mut from)?;
    let checksum = from.text().ok()?;
    if from.rest() > 0 {
        return None;
    }
    let mut to = Object::new(avro.len() + 1024);
    to.text("aggregate_id", Some(aggregate_id));
    to.text("aggregate_type", Some(aggregate_type));
    to.id("catalog_id", catalog_id);
    to.id("causation_id", causation_id);
    to.text("context", context);
    to.text("correlation_id", Some(correlation_id));
    to.number("current_index", current_index);
    to.text("current_item", current_item);
    to.text("error", error);
    to.id("event_id", Some(event_id));
    to.time("event_time", event_time);
    to.text("event_type", Some(event_type));
    to.id("execution_id", execution_id);
    to.text("idempotency_key", Some(idempotency_key));
    to.raw("meta", Some(meta.as_bytes()));
    to.text("node_name", node_name);
    to.text("node_type", node_type);
    to.text("organization_id", Some(organization_id));
    to.id("parent_execution_id", parent_execution_id);
    to.raw("payload_ref", payload_ref.as_deref());
    to.text("producer", Some(producer));
    to.text("result", result);
    to.id("root_id", Some(root_id));
    to.text("root_type", Some(root_type));
    to.text("schema_name", Some(schema_name));
    to.number("schema_version", Some(schema_version));
    to.text("status", status);
    to.text("stream_id", Some(stream_id));
    to.text("tenant_id", Some(tenant_id));
    to.text("trace", trace);
    Some((to.end(), checksum))
}

fn reference(from: &mut Reader<'_>) -> Option<Vec<u8>> {
    let uri = from.text().ok()?;
    let sha256 = from.text().ok()?;
    let media_type = from.text().ok()?;
    let byte_length = from.long().ok()?;
    let row_count = maybe_long(from)?;
    let schema_digest = maybe_text(from)?;
    let compression = maybe_text(from)?;
    let ipc = if from.present().ok()? {
        Some(hint(from)?)
    } else {
        None
    };
    let mut to = Object::new(512);
    to.number("byte_length", Some(byte_length));
    to.text("compression", compression);
    to.raw("ipc", ipc.as_deref());
    to.text("media_type", Some(media_type));
    to.number("row_count", row_count);
    to.text("schema_digest", schema_digest);
    to.text("sha256", Some(sha256));
    to.text("uri", Some(uri));
    Some(to.end())
}

fn hint(from: &mut Reader<'_>) -> Option<Vec<u8>> {
    let node_id = from.text().ok()?;
    let shm_name = from.text().ok()?;
    let schema_digest = from.text().ok()?;
    let valid_until = from.long().ok()?;
    let mut to = Object::new(256);
    to.text("node_id", Some(node_id));
    to.text("schema_digest", Some(schema_digest));
    to.text("shm_name", Some(shm_name));
    to.time("valid_until", valid_until);
    Some(to.end())
}

fn maybe_long(from: &mut Reader<'_>) -> Option<Option<i64>> {
    if from.present().ok()? {
        return Some(Some(from.long().ok()?));
    }
    Some(None)
}

fn maybe_text<'a>(from: &mut Reader<'a>) -> Option<Option<&'a str>> {
    if from.present().ok()? {
        return Some(Some(from.text().ok()?));
    }
    Some(None)
}
