//! Folded state of an execution (streams/execution/plan.py).

use indexmap::IndexMap;

use crate::events::model::PayloadRef;
use crate::execution::command::Command;
use crate::execution::stage::Stage;
use crate::json::Object;

/// One visit of a step, and what it has open.
#[derive(Debug, Clone, Default)]
pub struct Activation {
    pub command_id: Option<i64>,
    /// The command that computes the frames of a cursor.
    pub planning_id: Option<i64>,
    pub stage_id: Option<i64>,
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub execution_id: i64,
    pub tenant_id: String,
    pub organization_id: String,
    pub catalog_id: i64,
    pub catalog_version: i64,
    pub path: String,
    pub started_at: i64,
    pub seq: i64,
    pub status: &'static str,
    pub is_suspended: bool,
    /// Why it is suspended.
    pub suspension: Option<String>,
    pub parent_execution_id: Option<i64>,
    pub activations: IndexMap<String, Activation>,
    pub commands: IndexMap<i64, Command>,
    pub stages: IndexMap<i64, Stage>,
    /// Progress of each loop step's last activation.
    pub loops: IndexMap<String, Object>,
    pub fanouts: IndexMap<String, Object>,
    /// The error of the step because of which the execution will fail.
    pub failure: Option<Option<String>>,
    pub result: Option<Object>,
    pub output: Option<PayloadRef>,
    pub error: Option<String>,
    pub ended_at: Option<i64>,
    pub last_event_type: String,
    pub last_event_id: i64,
    pub last_node_name: Option<String>,
}

impl Plan {
    pub fn has_ended(&self) -> bool {
        matches!(self.status, "COMPLETED" | "PARTIAL" | "FAILED" | "CANCELLED")
    }
}

/// Name one activation of a step.
pub fn key_of(step: &str, visit: i64) -> String {
    format!("{step}#{visit}")
}
