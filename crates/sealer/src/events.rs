//! Events of a page of the log, as `Codec.decode` makes them. Rows that are not plainly right are
//! left out: the reference reads them again, and says what is wrong.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::BoundObject;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple, PyType};

use crate::avro::Reader;
use crate::record::HEADER;

/// Makes the events of one schema.
#[pyclass(frozen, module = "streams_native")]
pub struct EventReader {
    header: Vec<u8>,
    event: Py<PyType>,
    payload_ref: Py<PyType>,
    ipc_hint: Py<PyType>,
    root_of: Py<PyAny>,
    time_of: Py<PyAny>,
    in_utc: Py<PyAny>,
    loads: Py<PyAny>,
}

#[pymethods]
impl EventReader {
    /// The classes have slots, and no `__init__` that does more than set them. `time_of` makes a
    /// time of milliseconds, `in_utc` adds the zone to one that the database assigned.
    #[new]
    #[pyo3(signature = (*, header, event, payload_ref, ipc_hint, root_of, time_of, in_utc, loads))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        header: Vec<u8>,
        event: Py<PyType>,
        payload_ref: Py<PyType>,
        ipc_hint: Py<PyType>,
        root_of: Py<PyAny>,
        time_of: Py<PyAny>,
        in_utc: Py<PyAny>,
        loads: Py<PyAny>,
    ) -> Self {
        EventReader {
            header,
            event,
            payload_ref,
            ipc_hint,
            root_of,
            time_of,
            in_utc,
            loads,
        }
    }

    /// Return the events of rows, each (seq, position, stream_version, ingest_time, checksum,
    /// chain, envelope); None for one that is not plainly an event with this checksum.
    fn read<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, PyList>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut page = Page::new(self, py);
        let found = PyList::empty(py);
        for row in rows.iter() {
            match page.event(row.cast::<PyTuple>()?) {
                Ok(event) => found.append(event)?,
                Err(_) => found.append(py.None())?,
            }
        }
        Ok(found)
    }
}

/// What rows of one page share.
struct Page<'a, 'py> {
    py: Python<'py>,
    made_by: &'a EventReader,
    texts: HashMap<Vec<u8>, Bound<'py, PyString>>,
    root: Option<(Bound<'py, PyString>, i64, Bound<'py, PyAny>)>,
    event_time: Option<(i64, Bound<'py, PyAny>)>,
    ingest_time: Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
}

impl<'a, 'py> Page<'a, 'py> {
    fn new(made_by: &'a EventReader, py: Python<'py>) -> Self {
        Page {
            py,
            made_by,
            texts: HashMap::new(),
            root: None,
            event_time: None,
            ingest_time: None,
        }
    }

    fn event(&mut self, row: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let envelope = row.get_item(6)?;
        let envelope = envelope.cast::<PyBytes>()?.as_bytes();
        if !envelope.starts_with(&self.made_by.header) {
            return Err(odd("has another schema"));
        }
        let from = &mut Reader::new(&envelope[HEADER..]);
        let new = New::of(self.made_by.event.bind(py))?;
        new.set(intern!(py, "event_id"), from.long()?)?;
        new.set(intern!(py, "tenant_id"), self.few(from.text()?))?;
        new.set(intern!(py, "organization_id"), self.few(from.text()?))?;
        let root_type = self.few(from.text()?);
        let root_id = from.long()?;
        new.set(intern!(py, "root"), self.root(root_type, root_id)?)?;
        if from.present()? {
            from.long()?; // the execution's id, which its root has too
        }
        new.maybe_long(intern!(py, "parent_execution_id"), from)?;
        new.maybe_long(intern!(py, "catalog_id"), from)?;
        new.set(intern!(py, "stream_id"), from.text()?)?;
        new.set(intern!(py, "aggregate_type"), self.few(from.text()?))?;
        new.set(intern!(py, "aggregate_id"), from.text()?)?;
        new.set(intern!(py, "type"), self.few(from.text()?))?;
        new.set(intern!(py, "schema_name"), self.few(from.text()?))?;
        new.set(intern!(py, "schema_version"), from.long()?)?;
        new.set(intern!(py, "event_time"), self.time(from.long()?)?)?;
        new.set(intern!(py, "producer"), self.few(from.text()?))?;
        new.maybe_long(intern!(py, "causation_id"), from)?;
        new.set(intern!(py, "correlation_id"), self.few(from.text()?))?;
        new.set(intern!(py, "idempotency_key"), from.text()?)?;
        for name in [
            intern!(py, "node_name"),
            intern!(py, "node_type"),
            intern!(py, "status"),
        ] {
            let found = maybe_text(from)?.map(|text| self.few(text));
            new.set(name, found)?;
        }
        new.set(intern!(py, "error"), maybe_text(from)?)?;
        new.maybe_long(intern!(py, "current_index"), from)?;
        new.set(intern!(py, "current_item"), self.json(maybe_text(from)?)?)?;
        let meta = self.json(Some(from.text()?))?;
        if !meta.as_ref().is_some_and(|one| one.is_instance_of::<PyDict>()) {
            return Err(odd("has a meta that is not an object"));
        }
        new.set(intern!(py, "meta"), meta)?;
        new.set(intern!(py, "context"), self.json(maybe_text(from)?)?)?;
        new.set(intern!(py, "result"), self.json(maybe_text(from)?)?)?;
        let reference = match from.present()? {
            true => Some(self.reference(from)?),
            false => None,
        };
        new.set(intern!(py, "payload_ref"), reference)?;
        new.set(intern!(py, "trace"), maybe_text(from)?)?;
        let checksum = from.text()?;
        let stored = row.get_item(4)?;
        if from.rest() > 0 || checksum != hex(stored.cast::<PyBytes>()?.as_bytes()) {
            return Err(odd("has another checksum than its row"));
        }
        new.set(intern!(py, "checksum"), checksum)?;
        new.set(intern!(py, "seq"), row.get_item(0)?)?;
        new.set(intern!(py, "position"), row.get_item(1)?)?;
        new.set(intern!(py, "stream_version"), row.get_item(2)?)?;
        let ingest_time = self.in_utc(row.get_item(3)?)?;
        new.set(intern!(py, "ingest_time"), ingest_time)?;
        let chain = row.get_item(5)?;
        let chain = hex(chain.cast::<PyBytes>()?.as_bytes());
        new.set(intern!(py, "chain"), chain)?;
        Ok(new.0)
    }

    /// Text of which a page has few different values: each is made once.
    fn few(&mut self, text: &str) -> Bound<'py, PyString> {
        if let Some(found) = self.texts.get(text.as_bytes()) {
            return found.clone();
        }
        let made = PyString::new(self.py, text);
        self.texts.insert(text.as_bytes().to_vec(), made.clone());
        made
    }

    fn root(&mut self, kind: Bound<'py, PyString>, id: i64) -> PyResult<Bound<'py, PyAny>> {
        match &self.root {
            Some((known, known_id, root)) if known.is(&kind) && *known_id == id => Ok(root.clone()),
            _ => {
                let root = self.made_by.root_of.bind(self.py).call1((&kind, id))?;
                self.root = Some((kind, id, root.clone()));
                Ok(root)
            }
        }
    }

    fn time(&mut self, millis: i64) -> PyResult<Bound<'py, PyAny>> {
        match &self.event_time {
            Some((known, time)) if *known == millis => Ok(time.clone()),
            _ => {
                let time = self.made_by.time_of.bind(self.py).call1((millis,))?;
                self.event_time = Some((millis, time.clone()));
                Ok(time)
            }
        }
    }

    fn in_utc(&mut self, assigned: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Some((known, time)) = &self.ingest_time {
            if known.eq(&assigned)? {
                return Ok(time.clone());
            }
        }
        let time = self.made_by.in_utc.bind(self.py).call1((&assigned,))?;
        self.ingest_time = Some((assigned, time.clone()));
        Ok(time)
    }

    fn json(&self, text: Option<&str>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(text) = text else { return Ok(None) };
        let bytes = PyBytes::new(self.py, text.as_bytes());
        self.made_by.loads.bind(self.py).call1((bytes,)).map(Some)
    }

    fn reference(&mut self, from: &mut Reader<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let new = New::of(self.made_by.payload_ref.bind(py))?;
        new.set(intern!(py, "uri"), from.text()?)?;
        new.set(intern!(py, "sha256"), from.text()?)?;
        new.set(intern!(py, "media_type"), self.few(from.text()?))?;
        new.set(intern!(py, "byte_length"), from.long()?)?;
        new.maybe_long(intern!(py, "row_count"), from)?;
        for name in [intern!(py, "schema_digest"), intern!(py, "compression")] {
            let found = maybe_text(from)?.map(|text| self.few(text));
            new.set(name, found)?;
        }
        let hint = match from.present()? {
            true => Some(self.hint(from)?),
            false => None,
        };
        new.set(intern!(py, "ipc"), hint)?;
        Ok(new.0)
    }

    fn hint(&mut self, from: &mut Reader<'_>) -> PyResult<Bound<'py, PyAny>> {
        let py = self.py;
        let new = New::of(self.made_by.ipc_hint.bind(py))?;
        new.set(intern!(py, "node_id"), self.few(from.text()?))?;
        new.set(intern!(py, "shm_name"), from.text()?)?;
        new.set(intern!(py, "schema_digest"), self.few(from.text()?))?;
        new.set(intern!(py, "valid_until"), self.time(from.long()?)?)?;
        Ok(new.0)
    }
}

/// A new value of a frozen class with slots, while its fields are set.
struct New<'py>(Bound<'py, PyAny>);

impl<'py> New<'py> {
    fn of(kind: &Bound<'py, PyType>) -> PyResult<Self> {
        // SAFETY: allocates an empty instance, as `object.__new__` does; the GIL is held.
        unsafe {
            let made = ffi::PyType_GenericAlloc(kind.as_type_ptr(), 0);
            Bound::from_owned_ptr_or_err(kind.py(), made).map(New)
        }
    }

    /// Set a field, past the `__setattr__` that freezes it.
    fn set(
        &self,
        name: &Bound<'py, PyString>,
        value: impl IntoPyObject<'py, Error: Into<PyErr>>,
    ) -> PyResult<()> {
        let value = value
            .into_pyobject(self.0.py())
            .map_err(Into::into)?
            .into_any()
            .into_bound();
        // SAFETY: what `object.__setattr__` does; all three are live objects.
        match unsafe {
            ffi::PyObject_GenericSetAttr(self.0.as_ptr(), name.as_ptr(), value.as_ptr())
        } {
            0 => Ok(()),
            _ => Err(PyErr::fetch(self.0.py())),
        }
    }

    fn maybe_long(&self, name: &Bound<'py, PyString>, from: &mut Reader<'_>) -> PyResult<()> {
        if from.present()? {
            return self.set(name, from.long()?);
        }
        self.set(name, None::<i64>)
    }
}

fn maybe_text<'a>(from: &mut Reader<'a>) -> PyResult<Option<&'a str>> {
    if from.present()? {
        return from.text().map(Some);
    }
    Ok(None)
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(DIGITS[usize::from(byte >> 4)] as char);
        text.push(DIGITS[usize::from(byte & 15)] as char);
    }
    text
}

fn odd(why: &str) -> PyErr {
    PyValueError::new_err(format!("the row {why}"))
}
