//! Who may do what: users, their passwords, and the commands and keys that each may use.
//!
//! The rules are those of Redis's ACL files (`user NAME on >password ~keys* +@read -flushall`). A
//! server that was given neither a password nor users is open: whoever can connect can do
//! everything.

mod user;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use nearpm::Error;

use crate::fault::system;
use crate::options::AccessOptions;
pub use user::User;

/// The user of clients that have not said who they are.
pub const DEFAULT: &[u8] = b"default";

/// All users.
#[derive(Debug)]
pub struct Access {
    users: RwLock<BTreeMap<Vec<u8>, Arc<User>>>,
    /// Rises when users change.
    version: AtomicU64,
    /// The password of the default user, as it was set by itself; empty for none.
    password: RwLock<Vec<u8>>,
}

impl Access {
    /// Those that a server was told of.
    ///
    /// # Errors
    /// A file cannot be read; a line of it is wrong.
    pub fn new(options: &AccessOptions) -> Result<Access, Error> {
        let password = options.password()?;
        let mut users = BTreeMap::from([(DEFAULT.to_vec(), User::full(DEFAULT, password.as_deref()))]);
        if let Some(file) = &options.acl_file {
            for (number, line) in AccessOptions::read(file)?.lines().enumerate() {
                let user = acl_line(line, &users).map_err(|why| wrong_line(file, number + 1, &why))?;
                users.extend(user.map(|user| (user.name.clone(), user)));
            }
        }
        if let Some(file) = &options.auth_file {
            for (number, line) in AccessOptions::read(file)?.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
                let (name, password) =
                    line.split_once(':').ok_or_else(|| wrong_line(file, number + 1, "not user:password"))?;
                users.insert(name.into(), User::full(name.as_bytes(), Some(password.as_bytes())));
            }
            // Who gives no password is nobody then.
            users.entry(DEFAULT.to_vec()).and_modify(|user| user.on &= !user.nopass);
        }
        let users = users.into_iter().map(|(name, user)| (name, Arc::new(user))).collect();
        let password = RwLock::new(password.unwrap_or_default());
        Ok(Access { users: RwLock::new(users), version: AtomicU64::new(0), password })
    }

    fn read<R>(&self, look: impl FnOnce(&BTreeMap<Vec<u8>, Arc<User>>) -> R) -> R {
        look(&self.users.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A number that is another one when users have changed.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// The user of this name, as it is now.
    pub fn user(&self, name: &[u8]) -> Option<Arc<User>> {
        self.read(|users| users.get(name).cloned())
    }

    /// All users, by name.
    pub fn users(&self) -> Vec<Arc<User>> {
        self.read(|users| users.values().cloned().collect())
    }

    /// Who a client is that has given no password: `None` where one is asked for.
    pub fn nobody(&self) -> Option<Arc<User>> {
        self.user(DEFAULT).filter(|user| user.on && user.nopass)
    }

    /// Whether a client needs no password.
    pub fn is_open(&self) -> bool {
        self.nobody().is_some()
    }

    /// The user whose name and password these are.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let user = self.user(name);
        // As long as for one that is there.
        let knows = user.as_ref().map_or_else(|| User::new(name).knows(password), |user| user.knows(password));
        user.filter(|user| user.on && knows)
    }

    /// Makes a user, or changes one, by rules; all of them or none.
    ///
    /// # Errors
    /// What is wrong with a rule.
    pub fn set_user(&self, name: &[u8], rules: &[impl AsRef<[u8]>]) -> Result<(), String> {
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        let mut user = users.get(name).map_or_else(|| User::new(name), |user| (**user).clone());
        rules.iter().try_for_each(|rule| user.apply(rule.as_ref()))?;
        users.insert(name.to_vec(), Arc::new(user));
        self.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// The password that the default user was given by itself, not by rules; empty for none.
    pub fn password(&self) -> Vec<u8> {
        self.password.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives the default user this password and no other; an empty one is none.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn set_password(&self, password: &[u8]) -> Result<(), String> {
        match password {
            [] => self.set_user(DEFAULT, &[b"nopass"])?,
            some => self.set_user(DEFAULT, &[b"resetpass".to_vec(), [b">", some].concat()])?,
        }
        *self.password.write().unwrap_or_else(PoisonError::into_inner) = password.to_vec();
        Ok(())
    }

    /// Removes a user; false if there is none of the name. The default one stays.
    pub fn remove_user(&self, name: &[u8]) -> bool {
        let mut users = self.users.write().unwrap_or_else(PoisonError::into_inner);
        let removed = name != DEFAULT && users.remove(name).is_some();
        self.version.fetch_add(u64::from(removed), Ordering::Release);
        removed
    }
}

fn wrong_line(file: &str, number: usize, why: &str) -> Error {
    system(&format!("read line {number} of {file}"), std::io::Error::other(why.to_owned()))
}

/// The user of a line `user NAME rule ...`; nothing for an empty line and a comment. The default
/// one keeps what it may do, but not that it needs no password, when the line says otherwise.
fn acl_line(line: &str, users: &BTreeMap<Vec<u8>, User>) -> Result<Option<User>, String> {
    let mut words = line.split_ascii_whitespace();
    match words.next() {
        None => return Ok(None),
        Some(word) if word.starts_with('#') => return Ok(None),
        Some("user") => {}
        Some(_) => return Err("it does not begin with 'user'".to_owned()),
    }
    let name = words.next().ok_or("there is no name")?.as_bytes();
    let mut user = users.get(name).cloned().unwrap_or_else(|| User::new(name));
    words.try_for_each(|rule| user.apply(rule.as_bytes()))?;
    Ok(Some(user))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords() {
        let hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        for rules in ["on >secret".to_owned(), format!("on #{hash}"), "on >other >secret".to_owned()] {
            let (users, password) = (RwLock::default(), RwLock::default());
            let access = Access { users, password, version: AtomicU64::new(0) };
            access.set_user(b"u", &rules.split(' ').collect::<Vec<_>>()).expect("the rules are right");
            assert!(access.authenticate(b"u", b"secret").is_some(), "{rules}");
            assert!(access.authenticate(b"u", b"wrong").is_none() && access.authenticate(b"v", b"secret").is_none());
            access.set_user(b"u", &["off"]).expect("the rule is right");
            assert!(access.authenticate(b"u", b"secret").is_none());
        }
    }
}
