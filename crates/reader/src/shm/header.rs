//! Header of a region: its first 64 bytes (streams/payload/shm/header.py).
//!
//! Little-endian: magic `NOETLIPC`, format version u32, payload length u64, the payload's SHA-256;
//! then zeros, so that Arrow's buffers stay aligned.

use crate::error::{Error, Result};

pub const SIZE: usize = 64;
const MAGIC: &[u8; 8] = b"NOETLIPC";
pub const VERSION: u32 = 1;
const FIELDS_BYTES: usize = 52;

#[derive(Debug, PartialEq, Eq)]
pub struct Header {
    pub length: u64,
    pub sha256: [u8; 32],
}

impl Header {
    pub fn pack(&self) -> [u8; SIZE] {
        let mut out = [0; SIZE];
        out[..8].copy_from_slice(MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..20].copy_from_slice(&self.length.to_le_bytes());
        out[20..FIELDS_BYTES].copy_from_slice(&self.sha256);
        out
    }

    pub fn unpack(data: &[u8]) -> Result<Self> {
        if data.len() != SIZE {
            return Err(Error(format!("{} bytes are not a header", data.len())));
        }
        let version = u32::from_le_bytes(data[8..12].try_into().expect("four bytes"));
        let is_padded = data[FIELDS_BYTES..].iter().all(|byte| *byte == 0);
        if &data[..8] != MAGIC || version != VERSION || !is_padded {
            return Err(Error::new("not sealed, or in another format"));
        }
        let length = u64::from_le_bytes(data[12..20].try_into().expect("eight bytes"));
        Ok(Header { length, sha256: data[20..FIELDS_BYTES].try_into().expect("32 bytes") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_packed() {
        let header = Header { length: 7, sha256: [3; 32] };
        let packed = header.pack();
        assert_eq!(Header::unpack(&packed).unwrap(), header);
        let mut damaged = packed;
        damaged[63] = 1;
        assert!(Header::unpack(&damaged).is_err());
        assert!(Header::unpack(&packed[..63]).is_err());
    }
}
