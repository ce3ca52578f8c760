//! A sealed event: one row of bytes, in which everything else lies.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::record;
use crate::row::Place;

#[pyclass(frozen, module = "streams_native")]
pub struct Sealed {
    pub row: Vec<u8>,
    #[pyo3(get)]
    pub kind: Py<PyAny>,
    #[pyo3(get)]
    pub event_id: i64,
    #[pyo3(get)]
    pub root_id: i64,
    #[pyo3(get)]
    pub expected_version: Option<i64>,
    pub key: Place,
    pub claim: Option<Place>,
    pub reference: Option<Place>,
    pub digest: Place,
    pub envelope: Place,
}

impl Sealed {
    fn text(&self, place: &Place) -> PyResult<&str> {
        std::str::from_utf8(&self.row[place.clone()])
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn maybe_text(&self, place: &Option<Place>) -> PyResult<Option<&str>> {
        place.as_ref().map(|place| self.text(place)).transpose()
    }
}

#[pymethods]
impl Sealed {
    #[getter]
    fn idempotency_key(&self) -> PyResult<&str> {
        self.text(&self.key)
    }

    #[getter]
    fn claim(&self) -> PyResult<Option<&str>> {
        self.maybe_text(&self.claim)
    }

    #[getter]
    fn reference(&self) -> PyResult<Option<&str>> {
        self.maybe_text(&self.reference)
    }

    #[getter]
    fn digest<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.row[self.digest.clone()])
    }

    #[getter]
    fn envelope<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.row[self.envelope.clone()])
    }

    /// The envelope as Avro carries it, read from its bytes.
    #[getter]
    fn record<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        record::read(py, &self.row[self.envelope.clone()][record::HEADER..])
    }

    fn __eq__(&self, other: &Sealed) -> bool {
        self.row == other.row
    }
}
