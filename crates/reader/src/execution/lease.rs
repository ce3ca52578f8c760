//! The lease of a frame or command (streams/execution/lease.py).

#[derive(Debug, Clone)]
pub struct Lease {
    pub owner: String,
    pub since: i64,
    pub seconds: i64,
}

impl Lease {
    /// When it expires without a heartbeat, in microseconds since 1970.
    pub fn until(&self) -> i64 {
        self.since + self.seconds * 1_000_000
    }
}
