//! Sealing: what streams/events/seal.py does, for events that are plainly right.

use std::collections::HashMap;
use std::sync::Mutex;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::avro;
use crate::canonical::Canonical;
use crate::json::write_value;
use crate::kind::{Kind, MAX_SAFE_INT};
use crate::payload;
use crate::read::{id, maybe_id, maybe_int, maybe_text, text};
use crate::row::RowWriter;
use crate::sealed::Sealed;
use crate::text::{is_segment, MAX_KEY_CHARS, MAX_NAME_CHARS};
use crate::time::Clock;
use crate::unsure::{ensure, Answer, Unsure};

const MAX_PREFIXES: usize = 1024;

/// Seals the events of one producer with one schema.
#[pyclass(frozen, module = "streams_native")]
pub struct Sealer {
    kinds: HashMap<String, Kind>,
    header: Vec<u8>,
    producer: String,
    inline_max_bytes: usize,
    clock: Clock,
    dumps: Py<PyAny>,
    payload_prefix: Py<PyAny>,
    prefixes: Mutex<HashMap<(String, String), String>>,
}

#[pymethods]
impl Sealer {
    /// `catalogue` is the catalogue itself; `dumps` spells a float; `payload_prefix` says how
    /// the uri of a payload of a tenant and an organization begins.
    #[new]
    #[pyo3(signature = (*, catalogue, header, producer, inline_max_bytes, utc, epoch, dumps, payload_prefix))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        catalogue: &Bound<'_, PyAny>,
        header: Vec<u8>,
        producer: String,
        inline_max_bytes: usize,
        utc: Py<PyAny>,
        epoch: Py<PyAny>,
        dumps: Py<PyAny>,
        payload_prefix: Py<PyAny>,
    ) -> PyResult<Self> {
        let roots = catalogue.getattr("roots")?;
        let mut kinds = HashMap::new();
        for kind in catalogue
            .getattr("types")?
            .call_method0("values")?
            .try_iter()?
        {
            let kind = kind?;
            let root = roots.get_item(kind.getattr("root")?)?;
            let found_by = root
                .getattr("entities")?
                .get_item(kind.getattr("entity")?)?;
            let kind = Kind::read(&kind, found_by.extract()?)?;
            kinds.insert(kind.name.clone(), kind);
        }
        let clock = Clock { utc, epoch };
        let prefixes = Mutex::default();
        Ok(Sealer {
            kinds,
            header,
            producer,
            inline_max_bytes,
            clock,
            dumps,
            payload_prefix,
            prefixes,
        })
    }

    /// Return the sealed event, or None where the reference must decide.
    fn seal(&self, event: &Bound<'_, PyAny>, event_id: i64) -> Option<Sealed> {
        self.try_seal(event, event_id).ok()
    }
}

impl Sealer {
    fn try_seal(&self, event: &Bound<'_, PyAny>, event_id: i64) -> Answer<Sealed> {
        let py = event.py();
        let get = |name| event.getattr(name);
        let name = get(intern!(py, "type"))?;
        let name = name
            .cast_exact::<PyString>()
            .map_err(|_| Unsure)?
            .to_str()?;
        let kind = self.kinds.get(name).ok_or(Unsure)?;
        let version = maybe_int(&get(intern!(py, "schema_version"))?, 0, i64::MAX)?;
        ensure(version.is_none_or(|version| version == i64::from(kind.version)))?;

        let root = get(intern!(py, "root"))?;
        let root_type = root.getattr(intern!(py, "type"))?;
        let root_type = root_type
            .cast_exact::<PyString>()
            .map_err(|_| Unsure)?
            .to_str()?;
        ensure(root_type == kind.root)?;
        let root_id = id(&root.getattr(intern!(py, "id"))?)?;
        let causation_id = maybe_id(&get(intern!(py, "causation_id"))?)?;
        let parent_execution_id = maybe_id(&get(intern!(py, "parent_execution_id"))?)?;
        let catalog_id = maybe_id(&get(intern!(py, "catalog_id"))?)?;
        let expected_version = maybe_int(&get(intern!(py, "expected_version"))?, 0, i64::MAX)?;
        let current_index = maybe_int(&get(intern!(py, "current_index"))?, 0, MAX_SAFE_INT)?;
        let event_time = self.clock.millis(&get(intern!(py, "event_time"))?)?;

        let tenant_id = get(intern!(py, "tenant_id"))?;
        let tenant_id = text(&tenant_id, MAX_NAME_CHARS)?;
        let organization_id = get(intern!(py, "organization_id"))?;
        let organization_id = text(&organization_id, MAX_NAME_CHARS)?;
        ensure(is_segment(tenant_id) && is_segment(organization_id))?;
        let idempotency_key = get(intern!(py, "idempotency_key"))?;
        let idempotency_key = text(&idempotency_key, MAX_KEY_CHARS)?;
        let correlation_id = get(intern!(py, "correlation_id"))?;
        let root_text = root_id.to_string();
        let correlation_id = maybe_text(&correlation_id, MAX_KEY_CHARS)?.unwrap_or(&root_text);
        let trace = get(intern!(py, "trace"))?;
        let trace = maybe_text(&trace, MAX_NAME_CHARS)?;
        let node_name = get(intern!(py, "node_name"))?;
        let node_name = maybe_text(&node_name, MAX_NAME_CHARS)?;
        ensure(node_name.is_some() || !kind.requires("node_name"))?;
        let node_type = get(intern!(py, "node_type"))?;
        let node_type = maybe_text(&node_type, MAX_NAME_CHARS)?;
        ensure(node_type.is_some() || !kind.requires("node_type"))?;
        let status = get(intern!(py, "status"))?;
        let status = maybe_text(&status, MAX_NAME_CHARS)?;
        ensure(status.is_some() || !kind.requires("status"))?;

        let error = get(intern!(py, "error"))?;
        let error = user_text(kind, &error)?;
        let context = self.user_data(kind, "context", &get(intern!(py, "context"))?)?;
        let result = self.user_data(kind, "result", &get(intern!(py, "result"))?)?;
        let current_item =
            self.user_data(kind, "current_item", &get(intern!(py, "current_item"))?)?;
        let carried = [
            error,
            context.as_deref(),
            result.as_deref(),
            current_item.as_deref(),
        ];
        ensure(
            carried
                .iter()
                .flatten()
                .map(|text| text.len())
                .sum::<usize>()
                <= self.inline_max_bytes,
        )?;

        let meta = get(intern!(py, "meta"))?;
        let meta = meta.cast_exact::<PyDict>().map_err(|_| Unsure)?;
        let mut meta_json = Vec::with_capacity(256);
        kind.write_meta(&mut meta_json, meta)?;
        let claim = match &kind.claim {
            None => None,
            Some(field) => Some(format!("{}:{}", kind.name, routing(meta, field)?)),
        };
        let root_stream = format!("{}/{}", kind.root, root_id);
        let (stream_id, aggregate_id) = match kind.found_by.as_deref() {
            None => (root_stream.clone(), root_stream),
            Some("node_name") => within(&root_stream, &kind.entity, node_name.ok_or(Unsure)?),
            Some(field) => within(&root_stream, &kind.entity, &routing(meta, field)?),
        };
        let execution_id = (kind.root == "execution").then_some(root_id);

        let reference = get(intern!(py, "payload_ref"))?;
        let reference = if reference.is_none() {
            ensure(kind.payload != "required")?;
            None
        } else {
            ensure(kind.payload != "none")?;
            let prefix = self.prefix(py, tenant_id, organization_id)?;
            Some(payload::read(&reference, &prefix, &self.clock)?)
        };

        // Names in ascending order, as canonical JSON has them.
        let mut fields = Canonical::new();
        fields.text("aggregate_id", &aggregate_id);
        fields.text("aggregate_type", &kind.entity);
        fields.maybe_id("catalog_id", catalog_id);
        if let Some(cause) = causation_id {
            fields.aside_id("causation_id", cause);
        }
        fields.maybe_text("context", context.as_deref());
        fields.text("correlation_id", correlation_id);
        fields.maybe_number("current_index", current_index);
        fields.maybe_text("current_item", current_item.as_deref());
        fields.maybe_text("error", error);
        fields.aside_id("event_id", event_id);
        fields.aside_time("event_time", event_time);
        fields.text("event_type", &kind.name);
        fields.maybe_id("execution_id", execution_id);
        fields.text("idempotency_key", idempotency_key);
        fields.raw("meta", &meta_json);
        fields.maybe_text("node_name", node_name);
        fields.maybe_text("node_type", node_type);
        fields.text("organization_id", organization_id);
        fields.maybe_id("parent_execution_id", parent_execution_id);
        if let Some(reference) = &reference {
            fields.raw_pair("payload_ref", &reference.json, &reference.meant);
        }
        fields.aside_text("producer", &self.producer);
        fields.maybe_text("result", result.as_deref());
        fields.maybe_id("root_id", Some(root_id));
        fields.text("root_type", &kind.root);
        fields.text("schema_name", &kind.schema_name);
        fields.number("schema_version", kind.version.into());
        fields.maybe_text("status", status);
        fields.text("stream_id", &stream_id);
        fields.text("tenant_id", tenant_id);
        if let Some(trace) = trace {
            fields.aside_text("trace", trace);
        }
        fields.end();
        let checksum = blake3::hash(&fields.full).to_hex();
        let digest = blake3::hash(&fields.semantic);

        // The order of avro_schemas/Event.avsc; `SHAPE` says what it is.
        let mut envelope = Vec::with_capacity(2048);
        let out = &mut envelope;
        out.extend_from_slice(&self.header);
        avro::write_long(out, event_id);
        for text in [tenant_id, organization_id, &kind.root] {
            avro::write_bytes(out, text.as_bytes());
        }
        avro::write_long(out, root_id);
        for number in [execution_id, parent_execution_id, catalog_id] {
            avro::write_maybe_long(out, number);
        }
        for text in [
            &stream_id,
            &kind.entity,
            &aggregate_id,
            &kind.name,
            &kind.schema_name,
        ] {
            avro::write_bytes(out, text.as_bytes());
        }
        avro::write_long(out, kind.version.into());
        avro::write_long(out, event_time);
        avro::write_bytes(out, self.producer.as_bytes());
        avro::write_maybe_long(out, causation_id);
        avro::write_bytes(out, correlation_id.as_bytes());
        avro::write_bytes(out, idempotency_key.as_bytes());
        for text in [node_name, node_type, status, error] {
            avro::write_maybe_bytes(out, text.map(str::as_bytes));
        }
        avro::write_maybe_long(out, current_index);
        avro::write_maybe_bytes(out, current_item.as_deref().map(str::as_bytes));
        avro::write_bytes(out, &meta_json);
        avro::write_maybe_bytes(out, context.as_deref().map(str::as_bytes));
        avro::write_maybe_bytes(out, result.as_deref().map(str::as_bytes));
        match &reference {
            None => out.push(0),
            Some(reference) => {
                out.push(2);
                out.extend_from_slice(&reference.avro);
            }
        }
        avro::write_maybe_bytes(out, trace.map(str::as_bytes));
        avro::write_bytes(out, checksum.as_bytes());

        // The order of noetl.new_event.
        let mut row = RowWriter::new(2 * envelope.len() + 1024);
        row.text(kind.root.as_bytes());
        row.bigint(root_id);
        row.bigint(event_id);
        row.text(tenant_id.as_bytes());
        row.text(organization_id.as_bytes());
        row.maybe_bigint(parent_execution_id);
        row.maybe_bigint(catalog_id);
        row.text(stream_id.as_bytes());
        row.text(kind.entity.as_bytes());
        row.text(aggregate_id.as_bytes());
        row.text(kind.name.as_bytes());
        row.text(kind.schema_name.as_bytes());
        row.integer(kind.version);
        row.bigint(event_time);
        row.text(self.producer.as_bytes());
        row.maybe_bigint(causation_id);
        row.text(correlation_id.as_bytes());
        let key = row.text(idempotency_key.as_bytes());
        let claim = row.maybe_text(claim.as_deref().map(str::as_bytes));
        for text in [node_name, node_type, status, error] {
            row.maybe_text(text.map(str::as_bytes));
        }
        row.maybe_bigint(current_index);
        row.maybe_text(current_item.as_deref().map(str::as_bytes));
        row.text(&meta_json);
        row.maybe_text(context.as_deref().map(str::as_bytes));
        row.maybe_text(result.as_deref().map(str::as_bytes));
        let reference = row.maybe_text(
            reference
                .as_ref()
                .map(|reference| reference.json.as_slice()),
        );
        row.maybe_text(trace.map(str::as_bytes));
        row.text(checksum.as_bytes());
        let digest = row.bytea(digest.as_bytes());
        let envelope = row.bytea(&envelope);
        row.maybe_bigint(expected_version);
        for flag in [kind.ends, kind.reopens, kind.after_end] {
            row.flag(flag);
        }
        Ok(Sealed {
            row: row.bytes,
            kind: kind.value.clone_ref(py),
            event_id,
            root_id,
            expected_version,
            key,
            claim,
            reference,
            digest,
            envelope,
        })
    }

    /// Return the JSON text of user data that this type may carry.
    fn user_data(
        &self,
        kind: &Kind,
        field: &str,
        value: &Bound<'_, PyAny>,
    ) -> Answer<Option<String>> {
        if value.is_none() {
            return Ok(None);
        }
        ensure(kind.carries(field))?;
        let mut out = Vec::with_capacity(128);
        write_value(&mut out, value, self.dumps.bind(value.py()), 0)?;
        String::from_utf8(out).map(Some).map_err(|_| Unsure)
    }

    fn prefix(&self, py: Python<'_>, tenant: &str, organization: &str) -> Answer<String> {
        let mut known = self.prefixes.lock().map_err(|_| Unsure)?;
        let scope = (tenant.to_owned(), organization.to_owned());
        if let Some(prefix) = known.get(&scope) {
            return Ok(prefix.clone());
        }
        let prefix: String = self
            .payload_prefix
            .bind(py)
            .call1((tenant, organization))?
            .extract()?;
        if known.len() >= MAX_PREFIXES {
            known.clear();
        }
        known.insert(scope, prefix.clone());
        Ok(prefix)
    }
}

/// The error an event tells of: text of any kind that the database can hold.
fn user_text<'a>(kind: &Kind, error: &'a Bound<'_, PyAny>) -> Answer<Option<&'a str>> {
    if error.is_none() {
        ensure(!kind.requires("error"))?;
        return Ok(None);
    }
    let text = error
        .cast_exact::<PyString>()
        .map_err(|_| Unsure)?
        .to_str()?;
    ensure(kind.carries("error") && !text.as_bytes().contains(&0))?;
    ensure(!text.is_empty() || !kind.requires("error"))?;
    Ok(Some(text))
}

fn routing(meta: &Bound<'_, PyDict>, field: &str) -> Answer<String> {
    let value = meta.get_item(field)?.ok_or(Unsure)?;
    let value = value.cast_exact::<PyString>().map_err(|_| Unsure)?;
    Ok(value.to_str()?.to_owned())
}

/// The stream and the aggregate id of an entity inside its root.
fn within(root: &str, entity: &str, found: &str) -> (String, String) {
    let aggregate = format!("{entity}/{found}");
    (format!("{root}/{aggregate}"), aggregate)
}
