//! Readers of an event's JSON columns, with defaults for missing or mistyped values (streams/events/reading.py).

use serde_json::Value;

use crate::error::{Error, Result};
use crate::events::model::Event;
use crate::json::{python_str, Object};

impl Event {
    /// A required routing value as a number; 64-bit ids are text in JSON.
    pub fn id(&self, name: &str) -> Result<i64> {
        self.maybe_id(name)?.ok_or_else(|| self.unreadable(name))
    }

    pub fn maybe_id(&self, name: &str) -> Result<Option<i64>> {
        let number = match self.meta.get(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.parse().ok(),
            Some(Value::Bool(is_true)) => Some(i64::from(*is_true)),
            Some(other) => other.as_i64(),
        };
        number.map(Some).ok_or_else(|| self.unreadable(name))
    }

    /// A required routing value as text.
    pub fn text(&self, name: &str) -> Result<String> {
        self.maybe_text(name).ok_or_else(|| self.unreadable(name))
    }

    pub fn maybe_text(&self, name: &str) -> Option<String> {
        self.meta.get(name).filter(|one| !one.is_null()).map(python_str)
    }

    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.meta.get(name) {
            None => Err(self.unreadable(name)),
            Some(Value::Bool(is_true)) => Ok(*is_true),
            Some(Value::String(text)) => Ok(!text.is_empty()),
            Some(other) => Ok(other.as_i64() != Some(0)),
        }
    }

    /// The step's name; empty where a step must have one and has none.
    pub fn node(&self) -> String {
        self.node_name.clone().unwrap_or_default()
    }

    fn unreadable(&self, name: &str) -> Error {
        Error(format!(
            "{}: its routing value {name} is missing or of another type",
            self.event_type
        ))
    }
}

pub fn object_in(value: &Value, name: &str) -> Option<Object> {
    value.get(name).and_then(Value::as_object).cloned()
}

pub fn text_in(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}
