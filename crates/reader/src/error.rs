//! Errors of the reader: what is wrong, and with which event or object.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(pub String);

pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl Error {
    pub fn new(text: impl Into<String>) -> Self {
        Error(text.into())
    }

    /// The same error with what it concerns in front.
    pub fn of(self, what: impl fmt::Display) -> Self {
        Error(format!("{what}: {}", self.0))
    }
}
