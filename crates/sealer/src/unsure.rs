//! What the native code says instead of an error.

/// "This is not for me": the reference in Python decides, and names what is wrong.
#[derive(Debug)]
pub struct Unsure;

pub type Answer<T> = Result<T, Unsure>;

impl From<pyo3::PyErr> for Unsure {
    fn from(_: pyo3::PyErr) -> Self {
        Unsure
    }
}

/// Go on only where `fine`.
pub fn ensure(fine: bool) -> Answer<()> {
    if fine {
        Ok(())
    } else {
        Err(Unsure)
    }
}
