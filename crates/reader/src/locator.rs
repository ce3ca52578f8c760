//! Names of results and payloads (streams/events/locator.py).

use crate::error::{Error, Result};

const SCHEME: &str = "noetl://";

/// The name under which a result can be requested.
pub fn result_uri(execution_id: i64, step: &str, task: &str, result_id: i64) -> Result<String> {
    if execution_id <= 0 {
        return Err(Error(format!(
            "bad locator: execution {execution_id} is not a positive 63-bit number"
        )));
    }
    let (step, task) = (segment(step)?, segment(task)?);
    Ok(format!("{SCHEME}execution/{execution_id}/step/{step}/task/{task}/{result_id}"))
}

/// The key of a payload's object, `<tenant>/<org>/sha256/<digest>`.
pub fn payload_key(uri: &str, sha256: &str) -> Result<String> {
    let parts: Vec<_> = uri.strip_prefix(SCHEME).unwrap_or("").split('/').collect();
    let ["tenant", tenant, "org", org, "payloads", "sha256", digest] = parts[..] else {
        return Err(Error(format!("{uri} is not the locator of a payload")));
    };
    if digest != sha256 {
        return Err(Error(format!("{uri} is not the digest of the reference, {sha256}")));
    }
    Ok(format!("{tenant}/{org}/sha256/{digest}"))
}

/// The locator of the payload whose object has this key.
pub fn payload_uri(key: &str) -> Result<String> {
    match key.split('/').collect::<Vec<_>>()[..] {
        [tenant, org, "sha256", digest] => {
            Ok(format!("{SCHEME}tenant/{tenant}/org/{org}/payloads/sha256/{digest}"))
        }
        _ => Err(Error(format!("{key} is not the key of a payload"))),
    }
}

fn segment(value: &str) -> Result<String> {
    let is_wrong =
        value.is_empty() || value == "." || value == ".." || value.chars().any(char::is_control);
    if is_wrong {
        return Err(Error(format!("bad locator: {value:?} is not a valid segment")));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    let encoded = |byte: u8| {
        if is_plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    Ok(value.bytes().map(encoded).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_steps_are_percent_encoded() {
        let found = result_uri(7, "Zoë/1", "a", 9).unwrap();
        assert_eq!(found, "noetl://execution/7/step/Zo%C3%AB%2F1/task/a/9");
    }
}
