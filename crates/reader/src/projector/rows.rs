//! Rows of the projections as canonical JSON, one field per column (streams/projector/rows.py).
//!
//! Columns are in the order of the classes there; only objects inside them are sorted.

use serde_json::Value;

use crate::events::model::{IpcHint, PayloadRef};
use crate::json::{write, write_object, write_text, Object};
use crate::time::row_text;

/// Version of the fold; raised when the same events give other rows.
pub const PROJECTION_VERSION: i64 = 1;

/// The projection that a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Execution,
    Stage,
    Frame,
    Command,
    ResultRef,
}

#[derive(Debug, Clone)]
pub struct Row {
    pub kind: Kind,
    /// The primary key.
    pub key: i64,
    pub json: Vec<u8>,
}

/// Writes the fields of a row in order.
pub struct Fields {
    json: Vec<u8>,
}

impl Fields {
    pub fn new() -> Self {
        Fields { json: vec![b'{'] }
    }

    pub fn row(mut self, kind: Kind, key: i64) -> Row {
        self.json.push(b'}');
        Row { kind, key, json: self.json }
    }

    fn name(&mut self, name: &str) {
        if self.json.len() > 1 {
            self.json.push(b',');
        }
        write_text(name, &mut self.json);
        self.json.push(b':');
    }

    fn null(&mut self) {
        self.json.extend_from_slice(b"null");
    }

    pub fn number(self, name: &str, value: i64) -> Self {
        self.maybe_number(name, Some(value))
    }

    pub fn maybe_number(mut self, name: &str, value: Option<i64>) -> Self {
        self.name(name);
        match value {
            Some(number) => self.json.extend_from_slice(number.to_string().as_bytes()),
            None => self.null(),
        }
        self
    }

    pub fn text(self, name: &str, value: &str) -> Self {
        self.maybe_text(name, Some(value))
    }

    pub fn maybe_text(mut self, name: &str, value: Option<&str>) -> Self {
        self.name(name);
        match value {
            Some(text) => write_text(text, &mut self.json),
            None => self.null(),
        }
        self
    }

    pub fn time(self, name: &str, at: i64) -> Self {
        self.maybe_time(name, Some(at))
    }

    pub fn maybe_time(self, name: &str, at: Option<i64>) -> Self {
        let text = at.map(row_text);
        self.maybe_text(name, text.as_deref())
    }

    pub fn object(mut self, name: &str, value: &Object) -> Self {
        self.name(name);
        write_object(value, &mut self.json);
        self
    }

    pub fn maybe_object(self, name: &str, value: Option<&Object>) -> Self {
        match value {
            Some(fields) => self.object(name, fields),
            None => self.maybe_text(name, None),
        }
    }

    pub fn json(mut self, name: &str, value: Option<&Value>) -> Self {
        self.name(name);
        write(value.unwrap_or(&Value::Null), &mut self.json);
        self
    }

    pub fn reference(mut self, name: &str, value: Option<&PayloadRef>) -> Self {
        let Some(reference) = value else { return self.maybe_text(name, None) };
        self.name(name);
        let inner = Fields::new()
            .text("uri", &reference.uri)
            .text("sha256", &reference.sha256)
            .text("media_type", &reference.media_type)
            .number("byte_length", reference.byte_length)
            .maybe_number("row_count", reference.row_count)
            .maybe_text("schema_digest", reference.schema_digest.as_deref())
            .maybe_text("compression", reference.compression.as_deref())
            .hint(reference.ipc.as_ref());
        self.json.extend_from_slice(&inner.json);
        self.json.push(b'}');
        self
    }

    fn hint(mut self, value: Option<&IpcHint>) -> Self {
        let Some(hint) = value else { return self.maybe_text("ipc", None) };
        self.name("ipc");
        let inner = Fields::new()
            .text("node_id", &hint.node_id)
            .text("shm_name", &hint.shm_name)
            .text("schema_digest", &hint.schema_digest)
            .time("valid_until", hint.valid_until * 1000);
        self.json.extend_from_slice(&inner.json);
        self.json.push(b'}');
        self
    }
}
