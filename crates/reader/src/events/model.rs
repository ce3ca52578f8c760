//! Events as values (streams/events/model.py).

use serde_json::Value;

use crate::json::Object;

#[derive(Debug, Clone, PartialEq)]
pub struct IpcHint {
    pub node_id: String,
    pub shm_name: String,
    pub schema_digest: String,
    /// Milliseconds since 1970.
    pub valid_until: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PayloadRef {
    pub uri: String,
    pub sha256: String,
    pub media_type: String,
    pub byte_length: i64,
    pub row_count: Option<i64>,
    pub schema_digest: Option<String>,
    pub compression: Option<String>,
    pub ipc: Option<IpcHint>,
}

/// What the database assigned; `ingest_time` is in microseconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub struct Assigned {
    pub seq: i64,
    pub position: i64,
    pub stream_version: i64,
    pub ingest_time: i64,
}

/// A stored event: the part of its envelope that a fold reads, and what the database assigned.
#[derive(Debug, Clone)]
pub struct Event {
    pub event_id: i64,
    pub root_type: String,
    pub root_id: i64,
    pub tenant_id: String,
    pub organization_id: String,
    pub event_type: String,
    pub schema_name: String,
    pub schema_version: i32,
    pub causation_id: Option<i64>,
    pub parent_execution_id: Option<i64>,
    pub catalog_id: Option<i64>,
    pub node_name: Option<String>,
    pub status: Option<String>,
    pub error: Option<String>,
    pub current_item: Value,
    pub meta: Object,
    pub context: Value,
    pub result: Value,
    pub payload_ref: Option<PayloadRef>,
    pub assigned: Assigned,
}

impl Event {
    pub fn seq(&self) -> i64 {
        self.assigned.seq
    }

    pub fn at(&self) -> i64 {
        self.assigned.ingest_time
    }

    pub fn root(&self) -> String {
        format!("{}/{}", self.root_type, self.root_id)
    }
}
