//! The envelope's fields, read from its Avro.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::avro::Reader;

/// Bytes before the Avro: a zero and the schema's id.
pub const HEADER: usize = 5;

/// The schema this reads and writes: its names and types, in order (see streams/events/native.py).
pub const SHAPE: &str = "event_id:long tenant_id:string organization_id:string root_type:string \
root_id:long execution_id:long? parent_execution_id:long? catalog_id:long? stream_id:string \
aggregate_type:string aggregate_id:string event_type:string schema_name:string \
schema_version:int event_time:long producer:string causation_id:long? correlation_id:string \
idempotency_key:string node_name:string? node_type:string? status:string? error:string? \
current_index:long? current_item:string? meta:string context:string? result:string? \
payload_ref:(uri:string sha256:string media_type:string byte_length:long row_count:long? \
schema_digest:string? compression:string? ipc:(node_id:string shm_name:string \
schema_digest:string valid_until:long)?)? trace:string? checksum:string";

struct Fields<'a, 'py> {
    from: Reader<'a>,
    to: Bound<'py, PyDict>,
}

impl<'py> Fields<'_, 'py> {
    fn long(&mut self, name: &Bound<'py, PyString>) -> PyResult<()> {
        self.to.set_item(name, self.from.long()?)
    }

    fn text(&mut self, name: &Bound<'py, PyString>) -> PyResult<()> {
        self.to.set_item(name, self.from.text()?)
    }

    fn maybe_long(&mut self, name: &Bound<'py, PyString>) -> PyResult<()> {
        if self.from.present()? {
            return self.long(name);
        }
        self.to.set_item(name, self.to.py().None())
    }

    fn maybe_text(&mut self, name: &Bound<'py, PyString>) -> PyResult<()> {
        if self.from.present()? {
            return self.text(name);
        }
        self.to.set_item(name, self.to.py().None())
    }

    /// Read a record with `read` into a dictionary of its own, where there is one.
    fn maybe_record(
        &mut self,
        name: &Bound<'py, PyString>,
        read: fn(&mut Self) -> PyResult<()>,
    ) -> PyResult<()> {
        if !self.from.present()? {
            return self.to.set_item(name, self.to.py().None());
        }
        let outer = std::mem::replace(&mut self.to, PyDict::new(name.py()));
        read(self)?;
        let inner = std::mem::replace(&mut self.to, outer);
        self.to.set_item(name, inner)
    }
}

/// Read one record that fills `avro`.
pub fn read<'py>(py: Python<'py>, avro: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let mut fields = Fields {
        from: Reader::new(avro),
        to: PyDict::new(py),
    };
    let f = &mut fields;
    f.long(intern!(py, "event_id"))?;
    f.text(intern!(py, "tenant_id"))?;
    f.text(intern!(py, "organization_id"))?;
    f.text(intern!(py, "root_type"))?;
    f.long(intern!(py, "root_id"))?;
    f.maybe_long(intern!(py, "execution_id"))?;
    f.maybe_long(intern!(py, "parent_execution_id"))?;
    f.maybe_long(intern!(py, "catalog_id"))?;
    f.text(intern!(py, "stream_id"))?;
    f.text(intern!(py, "aggregate_type"))?;
    f.text(intern!(py, "aggregate_id"))?;
    f.text(intern!(py, "event_type"))?;
    f.text(intern!(py, "schema_name"))?;
    f.long(intern!(py, "schema_version"))?;
    f.long(intern!(py, "event_time"))?;
    f.text(intern!(py, "producer"))?;
    f.maybe_long(intern!(py, "causation_id"))?;
    f.text(intern!(py, "correlation_id"))?;
    f.text(intern!(py, "idempotency_key"))?;
    f.maybe_text(intern!(py, "node_name"))?;
    f.maybe_text(intern!(py, "node_type"))?;
    f.maybe_text(intern!(py, "status"))?;
    f.maybe_text(intern!(py, "error"))?;
    f.maybe_long(intern!(py, "current_index"))?;
    f.maybe_text(intern!(py, "current_item"))?;
    f.text(intern!(py, "meta"))?;
    f.maybe_text(intern!(py, "context"))?;
    f.maybe_text(intern!(py, "result"))?;
    f.maybe_record(intern!(py, "payload_ref"), read_reference)?;
    f.maybe_text(intern!(py, "trace"))?;
    f.text(intern!(py, "checksum"))?;
    match fields.from.rest() {
        0 => Ok(fields.to),
        rest => Err(PyValueError::new_err(format!(
            "{rest} bytes follow the envelope"
        ))),
    }
}

fn read_reference(f: &mut Fields<'_, '_>) -> PyResult<()> {
    let py = f.to.py();
    f.text(intern!(py, "uri"))?;
    f.text(intern!(py, "sha256"))?;
    f.text(intern!(py, "media_type"))?;
    f.long(intern!(py, "byte_length"))?;
    f.maybe_long(intern!(py, "row_count"))?;
    f.maybe_text(intern!(py, "schema_digest"))?;
    f.maybe_text(intern!(py, "compression"))?;
    f.maybe_record(intern!(py, "ipc"), read_hint)
}

fn read_hint(f: &mut Fields<'_, '_>) -> PyResult<()> {
    let py = f.to.py();
    f.text(intern!(py, "node_id"))?;
    f.text(intern!(py, "shm_name"))?;
    f.text(intern!(py, "schema_digest"))?;
    f.long(intern!(py, "valid_until"))
}
