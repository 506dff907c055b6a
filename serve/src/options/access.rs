//! Passwords, users, commands that are renamed or disabled.

use std::collections::HashMap;

use nearpm::Error;

use crate::fault::system;

/// Who may do what.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct AccessOptions {
    /// Password that clients give before anything else. Others of the machine see it among the
    /// processes: take a file
    #[arg(long, value_name = "PASSWORD", conflicts_with = "requirepass_file")]
    pub requirepass: Option<String>,
    /// File whose first line is the password that clients give before anything else
    #[arg(long, value_name = "FILE")]
    pub requirepass_file: Option<String>,
    /// Users, in the form of Redis's ACL files: a line
    /// `user NAME on >password ~keys +@all -flushall` for each
    #[arg(long, value_name = "FILE")]
    pub acl_file: Option<String>,
    /// Users, in the form of memcached's files: a line `name:password` for each, who may do
    /// everything
    #[arg(long, value_name = "FILE")]
    pub auth_file: Option<String>,
    /// Where nobody needs a password, turn clients of other machines away, whatever address is
    /// listened at
    #[arg(long, value_name = "YES|NO", default_value = "yes", value_parser = yes_or_no, action = clap::ArgAction::Set)]
    pub protected_mode: bool,
    /// Commands that have another name, or none: `flushall=` disables it; may be given several
    /// times
    #[arg(long = "rename-command", value_name = "COMMAND=NAME", value_parser = renamed)]
    pub renamed: Vec<(String, String)>,
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no".to_owned()),
    }
}

fn renamed(text: &str) -> Result<(String, String), String> {
    let (command, name) = text.split_once('=').ok_or("it is COMMAND=NAME, or COMMAND= to disable it")?;
    if command.is_empty() || text.bytes().any(|byte| byte.is_ascii_whitespace()) {
        return Err("it is COMMAND=NAME, without spaces".to_owned());
    }
    Ok((command.to_ascii_lowercase(), name.to_ascii_lowercase()))
}

impl AccessOptions {
    /// The contents of a file.
    pub(crate) fn read(file: &str) -> Result<String, Error> {
        std::fs::read_to_string(file).map_err(|error| system(&format!("read {file}"), error))
    }

    /// The password that everybody gives.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub fn password(&self) -> Result<Option<Vec<u8>>, Error> {
        let given = self.requirepass.clone().map(String::into_bytes);
        let Some(file) = &self.requirepass_file else { return Ok(given) };
        let text = Self::read(file)?;
        let line = text.lines().next().filter(|line| !line.is_empty());
        let line =
            line.ok_or_else(|| system(&format!("read {file}"), std::io::Error::other("its first line is empty")));
        Ok(Some(line?.as_bytes().to_vec()))
    }

    /// The names under which commands are known.
    pub fn names(&self) -> Renamed {
        let mut names = Renamed::default();
        for (command, name) in &self.renamed {
            names.0.entry(command.clone().into_bytes()).or_insert(None);
            if !name.is_empty() {
                names.0.insert(name.clone().into_bytes(), Some(command.clone().into_bytes()));
            }
        }
        names
    }
}

/// Names of commands, in lower case, that mean another command, or none.
#[derive(Clone, Debug, Default)]
pub struct Renamed(HashMap<Vec<u8>, Option<Vec<u8>>>);

impl Renamed {
    /// The command that a client means, in whatever case; `None` if it may not be called so.
    pub fn meant<'n>(&'n self, sent: &'n [u8]) -> Option<&'n [u8]> {
        if self.0.is_empty() {
            return Some(sent);
        }
        self.0.get(&sent.to_ascii_lowercase()).map_or(Some(sent), Option::as_deref)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_other_names_or_none() {
        let renamed = ["flushall=", "GET=fetch", "set=get"].map(|text| renamed(text).expect("it is right")).to_vec();
        let names = AccessOptions { renamed, ..AccessOptions::default() }.names();
        let meant =
            |name: &'static str| names.meant(name.as_bytes()).map(|name| String::from_utf8_lossy(name).into_owned());
        assert_eq!(meant("FlushAll"), None);
        assert_eq!(meant("fetch").as_deref(), Some("get"));
        assert_eq!(meant("GET").as_deref(), Some("set"));
        assert_eq!(meant("set"), None);
        assert_eq!(meant("MGET").as_deref(), Some("MGET"));
        for wrong in ["flushall", "=x", "a b=c"] {
            assert!(super::renamed(wrong).is_err(), "{wrong}");
        }
    }
}
