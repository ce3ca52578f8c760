//! Events: decoding, checksums, upcasting and typed reading (streams/events/).

pub mod envelope;
pub mod model;
pub mod reading;
pub mod schemas;
pub mod types;
pub mod typed;
pub mod upcast;
