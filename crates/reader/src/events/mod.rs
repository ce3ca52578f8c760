//! Events: decoding, checksums, upcasting and typed reading (streams/events/).

pub mod envelope;
pub mod known;
pub mod model;
pub mod reading;
pub mod schemas;
pub mod typed;
pub mod types;
pub mod upcast;
