//! What a client may ask for.

use super::table::Spec;
use crate::access::User;

/// Why a client may not run a command, if so.
pub fn refusal(user: Option<&User>, spec: &Spec, words: &[Vec<u8>]) -> Option<String> {
    let Some(user) = user else {
        let first = matches!(spec.name, "auth" | "hello" | "quit" | "reset");
        return (!first).then(|| "NOAUTH Authentication required.".to_owned());
    };
    let categories: &[&str] = match spec.name {
        "flushall" | "flushdb" => &["write", "dangerous"],
        "keys" => &["read", "dangerous"],
        "config" | "info" => &["admin", "dangerous"],
        _ if spec.changes => &["write"],
        "auth" | "hello" | "quit" | "reset" | "ping" | "echo" | "select" | "client" | "command" => &["connection"],
        "multi" | "exec" | "discard" => &["transaction"],
        _ => &["read"],
    };
    let always = matches!(spec.name, "auth" | "hello" | "quit" | "reset");
    let subcommand = words.get(1).map(|word| String::from_utf8_lossy(word).to_ascii_lowercase());
    if !always && !user.may_run(spec.name, subcommand.as_deref(), categories) {
        return Some(format!(
            "NOPERM User {} has no permissions to run the '{}' command",
            String::from_utf8_lossy(&user.name),
            spec.name
        ));
    }
    let may = |key: &&Vec<u8>| user.may_use(key, true, spec.changes);
    let keys = keys(spec.name, words);
    (!keys.iter().all(may)).then(|| "NOPERM No permissions to access a key".to_owned())
}

/// The keys among the words of a command.
fn keys<'w>(name: &str, words: &'w [Vec<u8>]) -> Vec<&'w Vec<u8>> {
    match name {
        "auth" | "client" | "command" | "config" | "dbsize" | "discard" | "echo" | "exec" | "flushall" | "flushdb"
        | "hello" | "info" | "keys" | "multi" | "ping" | "quit" | "reset" | "scan" | "select" => Vec::new(),
        "del" | "exists" | "mget" | "touch" | "unlink" => words[1..].iter().collect(),
        "mset" => words[1..].iter().step_by(2).collect(),
        _ => words[1..].iter().take(1).collect(),
    }
}
